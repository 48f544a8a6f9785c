"""`rejoin table` against a real broker and registry: what it prints runs as it is."""

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from spark_jobs.access.topics import open_topics
from spark_jobs.check.sample import check_sample
from spark_jobs.cli import app
from spark_jobs.demo.avro_encoding import AvroEncoding
from spark_jobs.demo.encoding import SCHEMAS, records_of
from spark_jobs.demo.json_encoding import JsonEncoding
from spark_jobs.demo.shop import ORDER_PARTITIONS, ORDERS, PRODUCTS, Order, Record, ShopEvent
from spark_jobs.demo.shop import Shop as ShopEvents
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer
from spark_jobs.errors import RejoinError
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.formats.written_schema import WrittenSchema
from spark_jobs.options.formats import RegistryOptions
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.debezium.recording import files, records, table_of
from tests.debezium.registry import recorded_registry
from tests.harness.gateway import kernel
from tests.harness.shop import Shop

READING = """
CREATE TABLE s ({columns}) WITH ('connector' = 'kafka', 'topic' = 's',
  'format' = 'debezium-json', 'properties.bootstrap.servers' = '{servers}');
INSERT INTO s SELECT {names} FROM `{table}`;
"""
# what Debezium wrote in these tables is no row: dates that SQL has not, and TRUNCATE
_NO_ROWS = {"debezium-infinity", "debezium-truncate", "value-out-of-range"}
# large values that an event leaves out come from state, which a sample has not
_LEFT_OUT = {"debezium-unavailable-value"}


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RegistryServer]:
    """One of its own: the demo's schemas have fixed subjects, which other tests use as well."""
    with RegistryServer(tmp_path / "schemas") as running:
        yield running


def create(broker: Broker, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for made in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        made.result(30)


def send(broker: Broker, sent: Sequence[Record]) -> None:
    servers = broker.bootstrap_servers
    producer = Producer({"enable.idempotence": True, "bootstrap.servers": servers})
    for record in sent:
        producer.produce(record.topic, record.value, record.key, record.partition)
    assert producer.flush(30) == 0


def printed(broker: Broker, *arguments: str) -> dict[str, Any]:
    command = ["table", *arguments, "--bootstrap-server", broker.bootstrap_servers, "--json"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def reading_job(found: dict[str, Any], broker: Broker) -> str:
    """The printed statement and a query that writes every column of its table."""
    (table,) = found["tables"]
    columns = [f"`{c['name']}`" for c in table["columns"]]
    typed = [f"{n} {c['type']}" for n, c in zip(columns, table["columns"], strict=True)]
    reading = READING.format(
        columns=", ".join(typed),
        servers=broker.bootstrap_servers,
        names=", ".join(columns),
        table=table["name"],
    )
    return f"{found['sql']}\n{reading}"


@pytest.mark.parametrize(
    "format_",
    [
        "json",
        pytest.param("json_schema", marks=pytest.mark.long),
        pytest.param("json_unwrapped", marks=pytest.mark.long),
        "avro",
    ],
)
def test_statements_of_recorded_topics_read_their_records(broker: Broker, format_: str) -> None:
    mark = f"table-{uuid.uuid4().hex[:8]}"
    with recorded_registry() as address:
        for file in files(format_):
            topic = f"{mark}.{file.stem}"
            create(broker, topic)
            send(broker, [Record(topic, 0, r.key, r.value) for r in records(file)])
            given = ("--registry", f"{address}/avro") if format_ == "avro" else ()
            job = reading_job(printed(broker, topic, *given), broker)
            (scan,) = scans(plan(bind(job))[0].root)
            with open_topics(topic, [topic], scan.properties) as edge:
                newest = edge.newest(1000)
            finding, sample = check_sample(kernel(), scan, newest)
            assert sample.rows or table_of(file) == "special", (file.name, finding.text)
            allowed = _NO_ROWS | (_LEFT_OUT if "wide" in file.stem else set())
            if finding.code == "SAMPLE_REJECTED":
                reasons = finding.text.split(": ")[1].split(";")[0].split(", ")
                assert {reason.split(" x ")[1] for reason in reasons} <= allowed, file.name


def test_joins_of_the_shop_run_as_they_are_printed(
    broker: Broker, registry: RegistryServer, tmp_path: Path
) -> None:
    """One job of two printed texts: the shop in JSON, and in Avro with a registry."""
    shops = {"json": Shop(broker, tmp_path), "avro": Shop(broker, tmp_path)}
    generated = ShopEvents(1_700_000_000_000, 20.0, 5.0)
    events = [*generated.opening(), *generated.until(30.0), *generated.closing()]
    # the second closing is later than the watermarks' delay: the rows of all earlier orders come
    expected = versions_at_the_time(events)
    events += generated.closing()
    printed_sql = []
    for name, shop in shops.items():
        encoding = JsonEncoding() if name == "json" else AvroEncoding(registry.url)
        orders, products = fill(shop, [r for e in events for r in records_of(e, encoding)])
        given: tuple[str, ...] = ()
        if name == "avro":
            register(shop, registry)
            given = ("--registry", registry.url)
        found = printed(broker, orders, products, *given)
        assert [table["changes"] for table in found["tables"]] == ["append", "upsert"]
        assert ("newest schema of subject" in str(found["tables"])) == (name == "avro")
        create(broker, shop.topic(f"{ORDERS}_{products}"), ORDER_PARTITIONS)
        printed_sql.append(found["sql"])
    job = shops["json"].start("\n".join(printed_sql))
    for name, shop in shops.items():
        joined = f"{ORDERS}_{shop.topic(PRODUCTS)}"
        got = shop.messages(joined, lambda messages: len(messages) >= len(expected))
        assert folded(got) == expected, (name, job.log_tail(40))
        assert len(got) == len(expected)
    job.stop(30)


def fill(shop: Shop, sent: Sequence[Record]) -> tuple[str, str]:
    """The topics of orders and products, with these records."""
    topics = {name: shop.topic(name) for name in (ORDERS, PRODUCTS)}
    create(shop.broker, topics[ORDERS], ORDER_PARTITIONS)
    create(shop.broker, topics[PRODUCTS])
    send(shop.broker, [replace(record, topic=topics[record.topic]) for record in sent])
    return topics[ORDERS], topics[PRODUCTS]


def register(shop: Shop, registry: RegistryServer) -> None:
    """The demo's schemas under the subjects of this test's topics."""
    client = RegistryClient(RegistryOptions(url=registry.url))
    for subject in (f"{ORDERS}-value", f"{PRODUCTS}-key", f"{PRODUCTS}-value"):
        text = (SCHEMAS / f"{subject}.avsc").read_text("utf-8")
        client.register(shop.topic(subject), WrittenSchema(text))
    client.close()


Version: TypeAlias = tuple[str | None, Decimal | None]


def folded(messages: Sequence[Message]) -> dict[str, Version]:
    """Per order, name and price of its product; prices are texts in JSON, decimals in Avro."""
    rows = [json.loads(m.value() or b"", parse_float=Decimal) for m in messages]
    prices = [row["product_price"] for row in rows]
    return {
        row["order_id"]: (row["product_name"], None if price is None else Decimal(price))
        for row, price in zip(rows, prices, strict=True)
    }


def versions_at_the_time(events: Sequence[ShopEvent]) -> dict[str, Version]:
    """Per order, name and price of its product at its time, without rejoin."""
    current: dict[str, Version] = {}
    found: dict[str, Version] = {}
    # a version holds from its own millisecond on
    for event in sorted(events, key=lambda e: (e.time_ms, isinstance(e, Order))):
        if isinstance(event, Order):
            found[event.order_id] = current.get(event.product_id or "", (None, None))
        elif event.after is None:
            current[event.product_id] = (None, None)
        else:
            current[event.product_id] = (event.after.name, event.after.price)
    return found


def test_errors_name_the_topic(broker: Broker) -> None:
    with pytest.raises(RejoinError, match="no topic nowhere") as refused:
        printed(broker, "nowhere")
    assert refused.value.code == "TOPIC_MISSING"
    empty = f"table-{uuid.uuid4().hex[:8]}"
    create(broker, empty)
    with pytest.raises(RejoinError, match=f"{empty} has no records") as nothing:
        printed(broker, empty)
    assert nothing.value.code == "SAMPLE_EMPTY"
