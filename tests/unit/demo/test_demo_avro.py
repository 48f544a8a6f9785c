"""The shop in Avro: bytes that stand in a registry's schemas, and rows read back from them."""

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice

import fastavro
import httpx
import pytest

from spark_jobs.demo.avro_encoding import AvroEncoding
from spark_jobs.demo.encoding import broken_records, records_of
from spark_jobs.demo.run import job_text
from spark_jobs.demo.shop import ORDERS, PRODUCTS, Order, Product, ProductChange
from spark_jobs.demo.verify import JoinedRow, RowAudit
from spark_jobs.embedded.registry import RegistryServer
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.formats.sink_schema import encodable
from spark_jobs.formats.written_schema import WrittenSchema
from spark_jobs.options.formats import RegistryOptions
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.harness.schemas import DEMO_SUBJECTS, SCHEMAS, schema_differences

OPENED_MS = 1_597_449_600_000
SCOOTER = Product("p_001", "scooter", Decimal("11.11"))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryServer]:
    """One of its own: other tests register other schemas for a topic `orders`."""
    with RegistryServer(tmp_path_factory.mktemp("shop-schemas")) as running:
        yield running


@pytest.fixture(scope="module")
def encoding(registry: RegistryServer) -> AvroEncoding:
    return AvroEncoding(registry.url)


@pytest.fixture(scope="module")
def sink(registry: RegistryServer) -> Callable[[JoinedRow], bytes]:
    """Writes a row as the job's sink does."""
    text = (SCHEMAS / "enriched_orders-value.avsc").read_text(encoding="utf-8")
    schema = fastavro.parse_schema(json.loads(text))
    client = RegistryClient(RegistryOptions(url=registry.url))
    schema_id = client.register("enriched_orders-value", WrittenSchema(text))
    client.close()

    def write(row: JoinedRow) -> bytes:
        body = io.BytesIO()
        fields = {
            "order_id": row.order_id,
            "order_time": row.order_ms,
            "product_name": row.product_name,
            "product_time": row.product_ms,
            "price": row.price,
        }
        fastavro.schemaless_writer(body, schema, fields)
        return b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()

    return write


def decoded(registry: RegistryServer, value: bytes | None) -> dict[str, object]:
    assert value is not None
    assert value[0] == 0
    schema_id = int.from_bytes(value[1:5], "big")
    text = httpx.get(f"{registry.url}/schemas/ids/{schema_id}").json()["schema"]
    body = io.BytesIO(value[5:])
    fields = fastavro.schemaless_reader(body, fastavro.parse_schema(json.loads(text)), None)
    assert body.read() == b""
    assert isinstance(fields, dict)
    return fields


def test_an_order_is_a_record_of_its_subject_s_schema(
    registry: RegistryServer, encoding: AvroEncoding
) -> None:
    (record,) = records_of(Order(7, None, OPENED_MS + 60_001), encoding)
    assert (record.topic, record.partition, record.key) == (ORDERS, 1, b"o_000007")
    assert decoded(registry, record.value) == {
        "order_id": "o_000007",
        "product_id": None,
        "order_time": datetime(2020, 8, 15, 0, 1, tzinfo=UTC) + timedelta(milliseconds=1),
    }


def test_what_is_registered_is_what_the_files_say(
    registry: RegistryServer, encoding: AvroEncoding
) -> None:
    """By the producer, and by the job for its sink."""
    [planned] = plan(bind(job_text(encoding, "localhost:9092")))
    sink = planned.root
    assert isinstance(sink, KafkaSink)
    encodable(sink.value_format, sink.topic, "value", sink.schema.fields)
    assert set(httpx.get(f"{registry.url}/subjects").json()) == DEMO_SUBJECTS
    assert list(schema_differences(registry.url, DEMO_SUBJECTS)) == []


def test_a_deletion_is_an_envelope_and_a_tombstone(
    registry: RegistryServer, encoding: AvroEncoding
) -> None:
    envelope, tombstone = records_of(ProductChange(9, "d", SCOOTER, None, OPENED_MS), encoding)
    assert (envelope.topic, tombstone.value) == (PRODUCTS, None)
    assert envelope.key == tombstone.key
    assert decoded(registry, envelope.key) == {"product_id": "p_001"}
    fields = decoded(registry, envelope.value)
    assert (fields["op"], fields["after"]) == ("d", None)
    row = {"product_id": "p_001", "product_name": "scooter", "product_price": Decimal("11.1100")}
    assert fields["before"] == row
    source = fields["source"]
    assert isinstance(source, dict)
    assert source["ts_ms"] == OPENED_MS


def test_the_sink_s_rows_are_judged_as_in_json(
    encoding: AvroEncoding, sink: Callable[[JoinedRow], bytes]
) -> None:
    audit = RowAudit(encoding.joined_row)
    audit.history.add(ProductChange(1, "r", None, SCOOTER, OPENED_MS))
    orders = [Order(n, product, OPENED_MS + n) for n, product in enumerate(["p_001", None], 1)]
    for order in orders:
        audit.expect(order)
    found = [audit.check(sink(audit.expected(order)))[0] for order in orders]
    assert found == ["right", "right"]
    again = JoinedRow("o_000001", OPENED_MS + 1, "scooter", OPENED_MS, Decimal("0.01"))
    assert audit.check(sink(again))[0] == "doubled"
    audit.expect(Order(3, "p_001", OPENED_MS + 3))
    wrong = JoinedRow("o_000003", OPENED_MS + 3, "scooter", OPENED_MS, Decimal("0.01"))
    assert audit.check(sink(wrong))[0] == "wrong"


@pytest.mark.parametrize("value", [b"", b"\0\0", b"{}", b"\0\x77\0\0\0", b"\1\0\0\0\1abc"])
def test_what_is_no_row_is_wrong(encoding: AvroEncoding, value: bytes) -> None:
    audit = RowAudit(encoding.joined_row)
    assert audit.check(value) == ("wrong", None)


def test_a_row_that_breaks_off_is_wrong(
    encoding: AvroEncoding, sink: Callable[[JoinedRow], bytes]
) -> None:
    audit = RowAudit(encoding.joined_row)
    whole = sink(JoinedRow("o_000001", OPENED_MS, "scooter", OPENED_MS, Decimal("11.11")))
    for value in (whole[:-3], whole + b"\0"):
        assert audit.check(value) == ("wrong", None)


def test_broken_records_differ_and_reach_both_topics(encoding: AvroEncoding) -> None:
    broken_values = encoding.broken_values()
    records = list(islice(broken_records(broken_values), 2 * len(broken_values)))
    assert {(r.topic, r.partition) for r in records} == {(ORDERS, 0), (ORDERS, 1), (PRODUCTS, 0)}
    assert len({r.value for r in records}) == len(broken_values)


def test_the_job_file_names_broker_and_registry_only_where_they_are_replaced(
    registry: RegistryServer, encoding: AvroEncoding
) -> None:
    text = job_text(encoding, "127.0.0.1:12345")
    assert text.count("'127.0.0.1:12345'") == 3
    assert text.count(f"'{registry.url}'") == 3
    assert "localhost" not in text
