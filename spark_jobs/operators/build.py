"""From a physical plan to a Spark query, by a walk from the sink to the scans."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.operators.clock import build_clock
from spark_jobs.operators.kafka_scan import build_scan
from spark_jobs.operators.kafka_sink import build_sink
from spark_jobs.operators.project import build_project
from spark_jobs.operators.rekey import build_rekey
from spark_jobs.operators.running import Running, Scan, feeds_gate, scans
from spark_jobs.operators.sink_spec import describe
from spark_jobs.operators.stateful import build_stateful
from spark_jobs.plan.nodes.physical import JoinInput, KafkaScan, KafkaSink, Operator, Stateful

ReadScan = Callable[[Scan, bool], DataFrame]


def build_query(sink: KafkaSink, running: Running) -> DataStreamWriter:
    """The query of one INSERT, ready to be given a trigger and a checkpoint."""
    described = describe(sink, running)
    records = records_of(sink, described, running, partial(build_scan, running))
    return build_sink(sink, described, records, running)


def records_of(sink: KafkaSink, described: str, running: Running, read: ReadScan) -> DataFrame:
    """The sink's encoded records; `read` returns the envelopes of a scan, chunked or not."""
    walk = _Walk(running, read, iter(scans(sink)))
    encoded = [
        build_project(project, walk.rows(project.input), described, number, running)
        for number, project in enumerate(sink.inputs)
    ]
    return reduce(DataFrame.unionAll, encoded)


@dataclass(slots=True)
class _Walk:
    """Visits the scans in the order of `scans`. `visited`: so far."""

    running: Running
    read: ReadScan
    scans: Iterator[Scan]
    visited: list[Scan] = field(default_factory=list)

    def rows(self, node: Operator) -> DataFrame:
        """Rows for the sink: the envelopes of a scan, or the changes of an operator."""
        if isinstance(node, KafkaScan):
            return self._scan(chunked=False)
        return self._changes(node, gated=False)

    def _changes(self, node: Stateful, *, gated: bool) -> DataFrame:
        before = len(self.visited)
        inputs = [self._envelopes(i, gated=gated or feeds_gate(node, i)) for i in node.inputs]
        if node.timing.tick_ms is not None:
            below = [scan for scan in self.visited[before:] if scan.gated]
            inputs.append(build_clock(node.timing.tick_ms, below, self.running))
        rows = reduce(DataFrame.unionAll, inputs)
        return build_stateful(node, rows, self.running, passes_loaded=gated)

    def _envelopes(self, node: JoinInput, *, gated: bool) -> DataFrame:
        if isinstance(node, KafkaScan):
            return self._scan(chunked=True)
        return build_rekey(node, self._changes(node.input, gated=gated), self.running)

    def _scan(self, *, chunked: bool) -> DataFrame:
        self.visited.append(next(self.scans))
        return self.read(self.visited[-1], chunked)
