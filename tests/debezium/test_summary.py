"""Nothing in the recorded run is unexplained."""

from typing import Any

import pytest

from tests.debezium import summary as summary_module
from tests.debezium.recording import FORMATS, files
from tests.debezium.summary import count, summary


@pytest.mark.service  # as long as a test with a broker: every table is compiled for itself
@pytest.mark.parametrize("format_", FORMATS)
def test_every_record_becomes_what_it_must(jvm: Any, registry: str, format_: str) -> None:
    counts = list(summary(jvm, registry, [format_]))
    assert [text for count in counts for text in count.unexplained] == []
    assert sum(count.records for count in counts) > 0
    if format_ != "avro_apicurio_headers":
        assert sum(sum(count.rows.values()) for count in counts) > 5


def test_differences_are_seen(jvm: Any, registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison is no formality: another expectation is told as unexplained."""
    file = next(f for f in files("json") if f.stem.endswith("public.orders"))
    monkeypatch.setitem(summary_module.KEYS, "orders", ["note"])
    assert count(jvm, registry, file).unexplained != []
