"""Options of the kernel's Kafka source."""

from spark_jobs.access.topics import EARLIEST
from spark_jobs.streaming.sources import ScanStart, source_options


def test_source_options() -> None:
    properties = {
        "bootstrap.servers": "b:1",
        "group.id": "shop",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_uncommitted",
    }
    start = ScanStart(starts={"orders": {0: EARLIEST}}, ends={"orders": {0: 5}})
    options = source_options(start, {"orders": "id"}, properties)
    assert options["subscribe"] == "orders"
    assert options["startingOffsets"] == '{"orders": {"0": -2}}'
    assert options["rejoin.ends"] == '{"orders": {"0": 5}}'
    assert options["kafka.isolation.level"] == "read_uncommitted"
    assert options["kafka.fetch.max.wait.ms"] == "10"
    assert options["groupIdPrefix"] == "shop"
    assert not {"kafka.group.id", "kafka.auto.offset.reset"} & options.keys()


def test_only_what_is_committed_is_read_by_default() -> None:
    start = ScanStart(starts={"orders": {0: EARLIEST}}, ends=None)
    options = source_options(start, {"orders": "id"}, {"bootstrap.servers": "b:1"})
    assert options["kafka.isolation.level"] == "read_committed"


def test_source_options_hold_the_reference_and_not_the_secret() -> None:
    entry = 'x.ScramLoginModule required username="u" password="${env:REJOIN_NOT_THERE}";'
    properties = {"bootstrap.servers": "b:1", "sasl.jaas.config": entry}
    start = ScanStart(starts={"orders": {0: EARLIEST}}, ends=None)
    options = source_options(start, {"orders": "id"}, properties)
    assert options["kafka.sasl.jaas.config"] == entry
