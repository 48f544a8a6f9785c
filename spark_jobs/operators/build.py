"""From a physical plan to a Spark query, by a walk from the sink to the scans."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.kernel.calls import Message
from spark_jobs.operators.clock import build_clock
from spark_jobs.operators.kafka_scan import build_scan
from spark_jobs.operators.kafka_sink import build_sink
from spark_jobs.operators.project import build_project
from spark_jobs.operators.rekey import build_rekey
from spark_jobs.operators.running import Running
from spark_jobs.operators.sink_spec import describe
from spark_jobs.operators.stateful import build_stateful
from spark_jobs.plan.nodes.physical import JoinInput, KafkaScan, KafkaSink, Operator, Stateful

ReadScan = Callable[[KafkaScan, bool], DataFrame]


def build_query(sink: KafkaSink, running: Running) -> DataStreamWriter:
    """The query of one INSERT, ready to be given a trigger and a checkpoint."""
    described = describe(sink, running)
    records = records_of(sink, described, running, partial(build_scan, running))
    return build_sink(sink, described, records, running)


def records_of(sink: KafkaSink, described: Message, running: Running, read: ReadScan) -> DataFrame:
    """The sink's encoded records; `read` returns the envelopes of a scan, chunked or not."""
    walk = _Walk(running, read)
    encoded = [
        build_project(project, walk.rows(project.input), described, number, running)
        for number, project in enumerate(sink.inputs)
    ]
    return reduce(DataFrame.unionAll, encoded)


@dataclass(frozen=True, slots=True)
class _Walk:
    running: Running
    read: ReadScan

    def rows(self, node: Operator) -> DataFrame:
        """Rows for the sink: the envelopes of a scan, or the changes of an operator."""
        return self.read(node, False) if isinstance(node, KafkaScan) else self._changes(node)

    def _changes(self, node: Stateful) -> DataFrame:
        inputs = [self._envelopes(i) for i in node.inputs]
        if node.timing.tick_ms is not None:
            inputs.append(build_clock(node, node.timing.tick_ms, self.running))
        return build_stateful(node, reduce(DataFrame.unionAll, inputs), self.running)

    def _envelopes(self, node: JoinInput) -> DataFrame:
        if isinstance(node, KafkaScan):
            return self.read(node, True)
        return build_rekey(node, self._changes(node.input), self.running)
