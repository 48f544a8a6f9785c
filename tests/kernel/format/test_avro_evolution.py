"""Several writer schemas in one topic and batch; what a table makes of them; state over them."""

import base64
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.planner import plan
from spark_jobs.scenario.records import to_base64
from spark_jobs.sql.bind.binder import bind
from tests.debezium.recording import files, records
from tests.kernel.conftest import SchemaIds
from tests.kernel.format.avro_records import (
    avro,
    debezium,
    framed,
    record_schema,
    use_recorded_schemas,
)

COLUMNS = {"a": "long", "b": "string"}


def test_writers_of_several_schemas(jvm: Any, schema_ids: SchemaIds) -> None:
    """Fields come, go, move and get wider, and unions turn round, from record to record."""
    old = framed(schema_ids, record_schema(("a", "int"), ("gone", "double")), {"a": 1, "gone": 2.0})
    new = framed(schema_ids, record_schema(("b", "string"), ("a", "long")), {"a": 2, "b": "x"})
    nullable = record_schema(("a", ["null", "int"]), ("b", ["null", "string"]))
    turned = record_schema(("a", ["int", "null"]), ("b", ["string", "null"]))
    values = {"a": 3, "b": "y"}, {"a": None, "b": None}
    either = [*framed(schema_ids, nullable, *values), *framed(schema_ids, turned, *values)]
    rows = avro(schema_ids, COLUMNS).read(jvm, *old, *new, *either, *old).rows
    both = [["+I", 3, "y"], ["+I", None, None]]
    assert rows == [["+I", 1, None], ["+I", 2, "x"], *both, *both, ["+I", 1, None]]


def declared(b: Any) -> dict[str, str]:
    return {"schema": json.dumps({**record_schema(("a", "long")), "fields": [
        {"name": "a", "type": "long"}, {"name": "b", "type": "string", **b},
    ]})}  # fmt: skip


def test_default_of_the_reader(jvm: Any, schema_ids: SchemaIds) -> None:
    """The writer's own default is of no meaning once the field is written, nor when it changes."""
    old = framed(schema_ids, record_schema(("a", "int")), {"a": 1})
    with_default = record_schema(("a", "int"), ("b", "string"))
    with_default["fields"][1]["default"] = "the writer's"
    new = framed(schema_ids, with_default, {"a": 2, "b": "written"})
    scan = avro(schema_ids, COLUMNS, options=declared({"default": "none"}))
    assert scan.read(jvm, *old, *new).rows == [["+I", 1, "none"], ["+I", 2, "written"]]


def test_alias_of_the_reader(jvm: Any, schema_ids: SchemaIds) -> None:
    old = framed(
        schema_ids, record_schema(("a", "int"), ("label", "string")), {"a": 1, "label": "l"}
    )
    new = framed(schema_ids, record_schema(("a", "int"), ("b", "string")), {"a": 2, "b": "n"})
    scan = avro(schema_ids, COLUMNS, options=declared({"aliases": ["label"]}))
    assert scan.read(jvm, *old, *new).rows == [["+I", 1, "l"], ["+I", 2, "n"]]


def test_writer_that_no_longer_fits(jvm: Any, schema_ids: SchemaIds) -> None:
    """Its records are bad, those before and after it are not."""
    good = framed(schema_ids, record_schema(("a", "int")), {"a": 1})
    bad = framed(schema_ids, record_schema(("a", "string")), {"a": "one"})
    got = avro(schema_ids, {"a": "long"}).read(jvm, *good, *bad, *good)
    assert (got.rows, got.rejects) == ([["+I", 1], ["+I", 1]], ["avro-schema-mismatch"])


def topic(name: str) -> Any:
    return records(next(f for f in files("avro") if f.stem == f"shopavro.public.{name}"))


def writer_ids(given: Any) -> list[int]:
    return [int.from_bytes(r.value[1:5], "big") for r in given if r.value is not None]


def test_recorded_changes_of_tables(jvm: Any, schema_ids: SchemaIds) -> None:
    """ADD COLUMN, DROP COLUMN, ADD COLUMN with a default, a wider NUMERIC: each in one batch."""
    use_recorded_schemas(schema_ids)
    cases = {
        "orders": ({"order_id": "string", "channel": "string"}, {2, 20, 28}),
        "orders_full": ({"order_id": "string", "qty": "integer"}, {4, 22}),
        "product_changelog": ({"product_id": "string", "price": "decimal(14,4)"}, {6, 24}),
    }
    for name, (columns, ids) in cases.items():
        given = topic(name)
        assert set(writer_ids(given)) == ids
        key, other = columns
        scan = debezium(schema_ids, columns, key)
        got = scan.read(jvm, *given)
        events = [r.event for r in given if r.event is not None]
        assert len(got.rows) + len(got.rejects) == len(events)
        wanted = [(e["after"][key], e["after"].get(other)) for e in events if e["after"]]
        rows = [(row[1], row[2]) for row in got.rows if row[0] == "+U"]
        assert [r[0] for r in rows] == [w[0] for w in wanted]
        if name != "product_changelog":
            assert rows == wanted
        assert any(row[1] is not None for row in rows)


SQL = """
CREATE TABLE orders (
  order_id STRING, note STRING, channel STRING, PRIMARY KEY (order_id) NOT ENFORCED
) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'x',
  'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = '{url}');
CREATE TABLE labels (id STRING, label STRING) WITH ('connector' = 'kafka', 'topic' = 'l',
  'properties.bootstrap.servers' = 'x', 'format' = 'json');
CREATE TABLE joined (order_id STRING, note STRING, channel STRING, label STRING)
WITH ('connector' = 'kafka', 'topic' = 'j', 'properties.bootstrap.servers' = 'x',
  'format' = 'changelog-json');
INSERT INTO joined
SELECT order_id, note, channel, label FROM orders LEFT JOIN labels ON order_id = id;
"""


def test_state_over_a_change_of_schema(jvm: Any, schema_ids: SchemaIds) -> None:
    """Rows that a join stored of one schema meet rows of another, after a restart too."""
    use_recorded_schemas(schema_ids)
    given = topic("orders")
    first = next(i for i, r in enumerate(given) if r.value and writer_ids([r]) != [2])
    (planned,) = plan(bind(SQL.format(url=schema_ids.url), "job.sql"))
    local = jvm.local(to_json(planned.root))
    folded: Counter[Any] = Counter()
    labels = [{"id": row, "label": f"l-{row}"} for row in ("o-1", "o-5", "o-4")]
    for part in (given[:first], given[first:]):
        local.feed("orders", as_records(part))
        fold(folded, local.step())
        local.restart()
    local.feed("labels", json.dumps([as_record(0, None, json.dumps(r).encode()) for r in labels]))
    fold(folded, local.step())
    assert +folded == expected(given, {r["id"]: r["label"] for r in labels})


def expected(given: Sequence[Any], labels: dict[str, str]) -> Counter[Any]:
    rows: dict[str, Any] = {}
    for event in (r.event for r in given if r.event is not None):
        if event["op"] == "d":
            rows.pop(event["before"]["order_id"], None)
        else:
            rows[event["after"]["order_id"]] = event["after"]
    return Counter(
        (key, row.get("note"), row.get("channel"), labels.get(key)) for key, row in rows.items()
    )


def fold(into: Counter[Any], told: str) -> None:
    step = json.loads(told)
    assert step["rejects"] == []
    for record in step["records"]:
        change = json.loads(base64.b64decode(record["value"]))
        into[tuple(change["data"].values())] += 1 if change["op"] in ("+I", "+U") else -1


def as_records(given: Sequence[Any]) -> str:
    return json.dumps([as_record(i, r.key, r.value) for i, r in enumerate(given)])


def as_record(offset: int, key: bytes | None, value: bytes | None) -> dict[str, Any]:
    return {
        "partition": 0, "offset": offset, "timestamp": 0, "headers": [],
        "key": to_base64(key), "value": to_base64(value),
    }  # fmt: skip
