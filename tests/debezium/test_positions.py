"""Where a change stands in its database's log."""

from typing import Any

import pytest

from tests.harness.gateway import jvm as gateway

NO_TIME = -(2**63)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"lsn": 31721016, "ts_ms": 9}, {"lsn": 31743976, "ts_ms": 5}),
        (
            {"file": "mysql-bin.000009", "pos": 4_000_000_000, "row": 3},
            {"file": "mysql-bin.000010", "pos": 4, "row": 0},
        ),
        (
            {"file": "mysql-bin.000010", "pos": 500, "row": 0},
            {"file": "mysql-bin.000010", "pos": 500, "row": 1},
        ),
        (
            {"commit_lsn": "00000025:00000d98:00a2"},
            {"commit_lsn": "00000025:00000d99:0001"},
        ),
        (
            {"commit_lsn": "00000025:00000d98:00a2"},
            {"commit_lsn": "00000025:00000d98:00a2", "change_lsn": "00000025:00000d98:0003"},
        ),
        (
            {"commit_lsn": "00000025:00000d98:00a2", "change_lsn": "00000025:00000d98:0003"},
            {"commit_lsn": "00000025:00000d98:00a2", "change_lsn": "00000025:00000d98:0004"},
        ),
        (
            {
                "commit_lsn": "00000025:00000d98:00a2",
                "change_lsn": "00000025:00000d98:0003",
                "event_serial_no": 1,
            },
            {
                "commit_lsn": "00000025:00000d98:00a2",
                "change_lsn": "00000025:00000d98:0003",
                "event_serial_no": 2,
            },
        ),
        ({"ts_ms": 1}, {"ts_ms": 2}),
    ],
)
def test_positions_grow_along_the_log(earlier: Any, later: Any) -> None:
    assert (0, NO_TIME) <= position(earlier) < position(later)


def test_no_position() -> None:
    assert position({})[0] == NO_TIME
    assert position({"commit_lsn": "NULL"})[0] == NO_TIME


def position(source: dict[str, Any]) -> tuple[int, int]:
    """Its place in the log, and among the changes that share that."""
    kernel = gateway().org.apache.spark.sql.rejoin
    nothing = getattr(gateway().scala.collection.immutable, "Nil$")
    decoded = kernel.format.Decoded(getattr(nothing, "MODULE$"))
    log = kernel.format.debezium.LogPosition()
    for name, value in source.items():
        if isinstance(value, str):
            log.text(name, value)
        else:
            log.number(name, value)
    log.write(decoded)
    return int(decoded.position().log()), int(decoded.position().within())
