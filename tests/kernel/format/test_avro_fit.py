"""What `rejoin check` says of a registered schema is what the decoder makes of its records."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from spark_jobs.embedded.registry import RegistryServer
from spark_jobs.operators.running import spec
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.harness.gateway import kernel

TABLES = """
CREATE TABLE o (id INT NOT NULL, name STRING, at TIMESTAMP(3)) WITH ('connector' = 'kafka',
  'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = '{format}',
  '{format}.url' = '{url}');
CREATE TABLE s (id INT, name STRING, at TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = 's',
  'properties.bootstrap.servers' = 'b:1', 'format' = 'changelog-json');
INSERT INTO s SELECT * FROM o;
"""
ID = {"name": "id", "type": "int"}
NAME = {"name": "name", "type": ["null", "string"]}
AT = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
Fit = Callable[..., dict[str, Any]]


@pytest.fixture
def fit(registry: RegistryServer, request: pytest.FixtureRequest) -> Fit:
    """Registers a schema; what the kernel says of it for the table `o`."""

    def ask(schema: dict[str, Any], form: str = "avro-confluent") -> dict[str, Any]:
        url = f"{registry.url}/subjects/{request.node.name}-{schema['name']}/versions"
        made = httpx.post(url, json={"schema": json.dumps(schema)}).json()["id"]
        [planned] = plan(bind(TABLES.format(url=registry.url, format=form)))
        assert isinstance(planned.root, KafkaSink)
        [scan] = scans(planned.root)
        found: dict[str, Any] = dict(kernel().fit(spec(scan), is_key=False, schema_id=made))
        return found

    return ask


def record(*fields: dict[str, Any], name: str = "o") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def test_a_schema_that_fits(fit: Fit) -> None:
    more = {"name": "more", "type": {"type": "array", "items": "long"}}
    assert fit(record(NAME, AT, more, ID)) == {"absent": []}


def test_columns_that_it_lacks(fit: Fit) -> None:
    assert fit(record(ID, AT)) == {"absent": ["name"]}


def test_a_column_that_must_not_be_null(fit: Fit) -> None:
    assert "'id' is NOT NULL and not in the schema" in fit(record(NAME, AT))["problem"]


def test_a_type_that_does_not_fit(fit: Fit) -> None:
    problem = fit(record(ID, {"name": "name", "type": "double"}, AT))["problem"]
    assert "'name': the writer has double, the table STRING" in problem
    flag = record(ID, NAME, {"name": "at", "type": "boolean"}, name="flagged")
    assert "'at': the writer has boolean, the table TIMESTAMP" in fit(flag)["problem"]


def test_the_row_in_an_envelope(fit: Fit) -> None:
    row = record(ID, AT, name="row")
    before = {"name": "before", "type": ["null", row]}
    after = {"name": "after", "type": ["null", "row"]}
    envelope = record(before, after, {"name": "op", "type": "string"}, name="envelope")
    assert fit(envelope, "debezium-avro-confluent") == {"absent": ["name"]}
    assert "no envelope of Debezium" in fit(row, "debezium-avro-confluent")["problem"]
