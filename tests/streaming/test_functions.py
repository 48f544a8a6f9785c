"""Spark computes what Flink gave for the calls of tests/functions, from broker to broker."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.plan.nodes.physical import KafkaSink
from tests.functions.jobs import answers, batches, calls_at, job_text, records, wrong
from tests.harness.bounded import Query, create_topics, produce, read_committed, run_to_end
from tests.harness.golden_jobs import bounded_job

pytestmark = pytest.mark.long


def test_spark_gives_what_flink_gave(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    servers, prefix = broker.bootstrap_servers, f"f{uuid.uuid4().hex[:8]}-"
    places = list(batches())
    calls = [calls_at(batch) for batch in places]
    bound = bounded_job("functions", job_text(calls), prefix, servers)
    create_topics(servers, (table.topics[0] for table in bound.tables.values()))
    for number, batch in enumerate(calls):
        topic = bound.tables[f"t{number}"].topics[0]
        produce(servers, ((topic, record) for record in records(bound, batch, number)))
    sinks = [plan.root for plan in bound.plans if isinstance(plan.root, KafkaSink)]
    queries = [Query(f"{prefix}{number}", sink) for number, sink in enumerate(sinks)]
    run_to_end(spark, queries, tmp_path, 500)
    differing: dict[str, list[Any]] = {}
    for number, batch in enumerate(calls):
        written = read_committed(servers, bound.tables[f"s{number}"].topics[0])
        found = zip(places[number], batch, answers(batch, written), strict=True)
        differing |= {c.expression: w for place, c, f in found if (w := wrong(place, f))}
    assert differing == {}
