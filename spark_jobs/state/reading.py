"""The committed state of a job's queries, operator by operator: read, never written.

A JVM of its own, without a Spark session, opens copies of the state's files in a folder of its
own. What it shows is one committed epoch of a query; a running job neither waits for it nor hears
of it.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pyspark.errors import PySparkRuntimeError

from spark_jobs.driver.queries import present
from spark_jobs.driver.verdict import judge, refuse
from spark_jobs.errors import ConfigError, StateError
from spark_jobs.kernel.build import kernel_jar
from spark_jobs.kernel.local_jvm import close, launch
from spark_jobs.plan.check.fingerprint import stateful_nodes
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.settings import JobSettings
from spark_jobs.state.operators import KeptOperator, Wanted
from spark_jobs.streaming.failure import JavaError
from spark_jobs.streaming.manifest import MANIFEST, Manifest

T = TypeVar("T")
_TRIES = 3


@contextmanager
def state_jvm() -> Iterator[Any]:
    """The kernel's package in a JVM whose copies of state go with it."""
    with tempfile.TemporaryDirectory(prefix="rejoin-state-") as folder:
        try:
            gateway = launch(kernel_jar(), local_dir=Path(folder))
        except PySparkRuntimeError as cause:
            raise ConfigError(
                "SPARK_NOT_STARTED",
                f"the JVM that reads state did not start: {cause}",
                hint="Java 17 or newer has to be on the PATH or in JAVA_HOME",
            ) from cause
        try:
            yield gateway.jvm.org.apache.spark.sql.rejoin
        finally:
            close(gateway)


class QueryState:
    """A query's checkpoint at one of its committed epochs."""

    def __init__(self, jvm: Any, name: str, sink: KafkaSink, settings: JobSettings) -> None:
        self.name = name
        self.folder = f"{settings.checkpoint.rstrip('/')}/{name}"
        self.operators = [KeptOperator(name, i, n) for i, n in enumerate(stateful_nodes(sink))]
        self._jvm = jvm
        self._files = jvm.CheckpointFiles(self.folder)
        self._chosen: int | None = None
        text = self._files.read(MANIFEST)
        if text is None or self._files.last("commits") < 0:
            raise StateError(
                "STATE_NOT_FOUND",
                f"query {name}: {self.folder} holds no committed epoch",
                hint="--checkpoint names the folder that `rejoin run` was given",
            )
        self.manifest = Manifest.read(text, name, self.folder)
        refuse(name, judge(self.manifest, present(sink, settings), None))

    def choose(self, epoch: int | None) -> None:
        """Read this epoch rather than the last one; raises StateError where it is gone."""
        epochs = [int(n) for n in self._files.entries("commits")]
        if epoch is not None and epoch not in epochs:
            raise StateError(
                "STATE_EPOCH_GONE",
                f"query {self.name}: epoch {epoch} is not among the committed ones that the "
                f"checkpoint still has, {epochs[0]} to {epochs[-1]}",
                hint="leave --epoch out for the last one",
            )
        self._chosen = epoch

    def read(
        self, wanted: Wanted, ask: Callable[[KeptOperator, Any], T]
    ) -> tuple[int, list[tuple[KeptOperator, T]]]:
        """What the readers of the operators say, all of one epoch.

        A running job removes old epochs: where one goes while it is read, a newer one is read.
        """
        operators = [operator for operator in self.operators if wanted.takes(operator)]
        tries = _TRIES
        while True:
            epoch = self._chosen if self._chosen is not None else int(self._files.last("commits"))
            tries -= 1
            try:
                return epoch, [(o, ask(o, self._reader(o, epoch))) for o in operators]
            except JavaError as cause:
                is_last = self._chosen is not None or self._files.last("commits") == epoch
                if is_last or tries == 0:
                    raise self._unreadable(epoch, cause) from cause

    def _reader(self, operator: KeptOperator, epoch: int) -> Any:
        node = json.dumps(to_json(operator.node))
        return self._jvm.Kernel.stateReader(self.folder, operator.number, epoch, node)

    def _unreadable(self, epoch: int, cause: Any) -> StateError:
        told = str(cause.java_exception.toString()).split("\n", 1)[0]
        return StateError(
            "STATE_UNREADABLE",
            f"query {self.name}, epoch {epoch}: {told}",
            hint="is the checkpoint whole, and of this release? `rejoin check` compares the two",
        )


def open_queries(
    jvm: Any, sinks: Mapping[str, KafkaSink], settings: JobSettings, wanted: Wanted
) -> tuple[list[QueryState], list[str]]:
    """Those that are wanted, and notes on those that have no epoch yet.

    Raises StateError where none has one, ConfigError where nothing is called as is wanted.
    """
    if wanted.query is not None and wanted.query not in sinks:
        raise _unknown("query", wanted.query, list(sinks))
    queries: list[QueryState] = []
    missing: list[StateError] = []
    for name, sink in sinks.items():
        if wanted.query in (None, name):
            try:
                queries.append(QueryState(jvm, name, sink, settings))
            except StateError as error:
                if error.code != "STATE_NOT_FOUND":
                    raise
                missing.append(error)
    if not queries:
        raise missing[0]
    _check_names([operator for query in queries for operator in query.operators], wanted)
    for query in queries:
        query.choose(wanted.epoch)
    return queries, [error.message for error in missing]


def _check_names(operators: Sequence[KeptOperator], wanted: Wanted) -> None:
    found = [o for o in operators if Wanted(operator=wanted.operator).takes(o)]
    if wanted.operator is not None and not found:
        raise _unknown("operator", wanted.operator, [f"{o.query}/{o.node.id}" for o in operators])
    if wanted.side is not None and not any(wanted.takes(o) for o in found):
        sides = dict.fromkeys(side for o in found for side in o.sides)
        raise _unknown("side", wanted.side, list(sides))


def _unknown(what: str, name: str, known: Sequence[str]) -> ConfigError:
    told = ", ".join(known) or "none: the job keeps no state"
    return ConfigError("STATE_SELECTION", f"no {what} is called '{name}'", hint=f"there is: {told}")
