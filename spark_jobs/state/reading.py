"""Reads the committed state of a job's queries, operator by operator; writes nothing.

A separate JVM without a Spark session opens copies of the state files in a temporary folder. It
reads one committed epoch of each query; a running job does not notice.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from spark_jobs.driver.queries import present
from spark_jobs.driver.verdict import judge, refuse
from spark_jobs.errors import ConfigError, StateError
from spark_jobs.kernel.build import kernel_jar
from spark_jobs.kernel.calls import Kernel, StateReader
from spark_jobs.kernel.jvm import close
from spark_jobs.kernel.standalone import launch
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.settings import JobSettings
from spark_jobs.state.operators import StatefulOperator, StateSelection
from spark_jobs.streaming.failure import JavaError
from spark_jobs.streaming.manifest import MANIFEST, Manifest
from spark_jobs.streaming.object_store import jars_for, properties_for, reading

T = TypeVar("T")
_TRIES = 3


@contextmanager
def state_kernel(settings: JobSettings) -> Iterator[Kernel]:
    """The kernel in a JVM of its own; its copies of state files are removed with it."""
    checkpoint = settings.checkpoint
    properties = properties_for(settings.spark_properties, checkpoint)
    with tempfile.TemporaryDirectory(prefix="rejoin-state-") as folder:
        jars = (kernel_jar(), *jars_for(checkpoint))
        gateway = launch(*jars, properties=properties, local_dir=Path(folder))
        try:
            yield Kernel(gateway.jvm)
        finally:
            close(gateway)


class QueryState:
    """A query's checkpoint at one of its committed epochs."""

    def __init__(self, kernel: Kernel, name: str, sink: KafkaSink, settings: JobSettings) -> None:
        self.name = name
        self.folder = f"{settings.checkpoint.rstrip('/')}/{name}"
        self.operators = [StatefulOperator(name, i, n) for i, n in enumerate(stateful_nodes(sink))]
        self._kernel = kernel
        self._chosen: int | None = None
        with reading(settings.checkpoint):
            self._files = kernel.stored_files(self.folder)
            text = self._files.read(MANIFEST)
            is_empty = text is None or self._files.last("commits") < 0
        if text is None or is_empty:
            raise StateError(
                "STATE_NOT_FOUND",
                f"query {name}: {self.folder} holds no committed epoch",
                hint="give --checkpoint the folder that `rejoin run` was given",
            )
        self.manifest = Manifest.read(text, name, self.folder)
        refuse(name, judge(self.manifest, present(sink, settings), None))

    def choose(self, epoch: int | None) -> None:
        """Read this epoch instead of the last one; raises StateError if it is gone."""
        epochs = [int(n) for n in self._files.entries("commits")]
        if epoch is not None and epoch not in epochs:
            raise StateError(
                "STATE_EPOCH_GONE",
                f"query {self.name}: epoch {epoch} is not in the checkpoint, which has "
                f"{epochs[0]} to {epochs[-1]}",
                hint="leave --epoch out to read the last one",
            )
        self._chosen = epoch

    def read(
        self, selection: StateSelection, read_operator: Callable[[StatefulOperator, StateReader], T]
    ) -> tuple[int, list[tuple[StatefulOperator, T]]]:
        """Apply `read_operator` to each selected operator, all at one epoch; returns the epoch too.

        A running job removes old epochs. If it removes this one meanwhile, a newer one is read.
        """
        operators = [operator for operator in self.operators if selection.takes(operator)]
        tries = _TRIES
        while True:
            epoch = self._chosen if self._chosen is not None else int(self._files.last("commits"))
            tries -= 1
            try:
                return epoch, [(o, read_operator(o, self._reader(o, epoch))) for o in operators]
            except JavaError as cause:
                is_last = self._chosen is not None or self._files.last("commits") == epoch
                if is_last or tries == 0:
                    raise self._unreadable(epoch, cause) from cause

    def _reader(self, operator: StatefulOperator, epoch: int) -> StateReader:
        return self._kernel.state_reader(
            self.folder,
            operator.number,
            epoch,
            to_json(operator.node),
            even_groups=self.manifest.even_groups,
        )

    def _unreadable(self, epoch: int, cause: Any) -> StateError:
        reason = str(cause.java_exception.toString()).split("\n", 1)[0]
        return StateError(
            "STATE_UNREADABLE",
            f"query {self.name}, epoch {epoch}: {reason}",
            hint="the checkpoint may be damaged or of another release; see `rejoin check`",
        )


def open_queries(
    kernel: Kernel, sinks: Mapping[str, KafkaSink], settings: JobSettings, selection: StateSelection
) -> tuple[list[QueryState], list[str]]:
    """Open the selected queries; also returns notes on those that have no epoch yet.

    Raises StateError if no query has an epoch, ConfigError if the selection matches nothing.
    """
    if selection.query is not None and selection.query not in sinks:
        raise _unknown("query", selection.query, list(sinks))
    queries: list[QueryState] = []
    missing: list[StateError] = []
    for name, sink in sinks.items():
        if selection.query in (None, name):
            try:
                queries.append(QueryState(kernel, name, sink, settings))
            except StateError as error:
                if error.code != "STATE_NOT_FOUND":
                    raise
                missing.append(error)
    if not queries:
        raise missing[0]
    _check_names([operator for query in queries for operator in query.operators], selection)
    for query in queries:
        query.choose(selection.epoch)
    return queries, [error.message for error in missing]


def _check_names(operators: Sequence[StatefulOperator], selection: StateSelection) -> None:
    found = [o for o in operators if StateSelection(operator=selection.operator).takes(o)]
    if selection.operator is not None and not found:
        raise _unknown(
            "operator", selection.operator, [f"{o.query}/{o.node.id}" for o in operators]
        )
    if selection.side is not None and not any(selection.takes(o) for o in found):
        sides = dict.fromkeys(side for o in found for side in o.sides)
        raise _unknown("side", selection.side, list(sides))


def _unknown(what: str, name: str, known: Sequence[str]) -> ConfigError:
    names = ", ".join(known) or "none, as the job keeps no state"
    return ConfigError("STATE_SELECTION", f"no {what} is called '{name}'", hint=f"known: {names}")
