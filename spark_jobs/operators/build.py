"""From a physical plan to a Spark query, by a walk from the sink to the scans."""

from collections.abc import Callable
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.kernel.calls import Message
from spark_jobs.operators.clock import build_clock
from spark_jobs.operators.kafka_scan import build_scan
from spark_jobs.operators.kafka_sink import build_sink
from spark_jobs.operators.lookup import build_lookup
from spark_jobs.operators.project import build_project
from spark_jobs.operators.rekey import build_rekey
from spark_jobs.operators.running import Running
from spark_jobs.operators.sink_spec import describe
from spark_jobs.operators.stateful import build_stateful
from spark_jobs.plan.nodes.physical import JoinInput, KafkaScan, KafkaSink, LookupJoin, Stateful
from spark_jobs.plan.nodes.walk import looks_up

ReadScan = Callable[[KafkaScan, bool], DataFrame]


def build_query(sink: KafkaSink, running: Running) -> DataStreamWriter:
    """The query of one INSERT, ready to be given a trigger and a checkpoint."""
    described = describe(sink, running)
    # the log of lookups knows tasks by their number, also where another release began the epoch
    read = partial(build_scan, running, shares_tasks=not looks_up(sink))
    records = records_of(sink, described, running, read)
    return build_sink(sink, described, records, running)


def records_of(sink: KafkaSink, described: Message, running: Running, read: ReadScan) -> DataFrame:
    """The sink's encoded records; `read` returns the envelopes of a scan, chunked or not."""

    def changes(node: Stateful, moves_on: bool) -> DataFrame:
        inputs = [envelopes(i) for i in node.inputs]
        if isinstance(node.machine, LookupJoin):
            inputs = [build_lookup(node, reduce(DataFrame.unionAll, inputs), running, moves_on)]
        if node.timing.tick_ms is not None:
            inputs.append(build_clock(node, node.timing.tick_ms, running))
        rows = reduce(DataFrame.unionAll, inputs)
        return build_stateful(node, rows, running, moves_on=moves_on)

    def envelopes(node: JoinInput) -> DataFrame:
        if isinstance(node, KafkaScan):
            return read(node, True)
        return build_rekey(node, changes(node.input, moves_on=True), running)

    encoded = []
    for number, project in enumerate(sink.inputs):
        given = project.input
        rows = (
            read(given, False)
            if isinstance(given, KafkaScan)
            else changes(given, moves_on=sink.exchange)
        )
        encoded.append(build_project(project, rows, described, number, running))
    return reduce(DataFrame.unionAll, encoded)
