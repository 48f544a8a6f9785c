"""The benchmark's loader and reader against a real broker and registry."""

from dataclasses import replace

from bench.avro import schema_by_id
from bench.load import load
from bench.measure import SinkProgress
from bench.results import Decoder, committed
from bench.workloads.catalog import WORKLOADS
from bench.workloads.temporal import ORDERS, PRICES, TemporalData
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer


def test_every_record_arrives(broker: Broker, registry: RegistryServer) -> None:
    data = TemporalData(20_000, 500)
    load(data, broker.bootstrap_servers, registry.url)
    columns = tuple(name for name, _ in ORDERS.value)
    read = Decoder(registry.url, replace(WORKLOADS["temporal-left"], columns=columns))
    orders = [read(m.value() or b"") for m in committed(broker.bootstrap_servers, ORDERS.name)]
    assert len(orders) == 15_000
    expected = data.expected()
    for key, (order, product, quantity, at_us) in orders:
        assert expected[key][:4] == (order, product, quantity, int(str(at_us)) // 1000)
    prices = list(committed(broker.bootstrap_servers, PRICES.name))
    assert len(prices) == 5_000
    key = prices[0].key() or b""
    assert "prices_key" in schema_by_id(registry.url, int.from_bytes(key[1:5]))
    progress = SinkProgress(broker.bootstrap_servers, PRICES.name)
    try:
        assert progress() == 5_000
    finally:
        progress.close()
