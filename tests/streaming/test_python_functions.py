"""Python functions in `rejoin run`, of a module that lies beside the job file."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.embedded.broker import Broker
from tests.harness.shop import Shop

MODULE = """
from decimal import Decimal


def share(part: int, whole: int) -> float | None:
    if part < 0:
        raise ValueError("a part is negative")
    return None if whole == 0 else part / whole


def wanted(name: str | None) -> bool:
    return name is None or name != "out"
"""
JOB = """
CREATE FUNCTION share AS 'shares_of_parts.share' LANGUAGE PYTHON;
CREATE FUNCTION wanted AS 'shares_of_parts.wanted' LANGUAGE PYTHON;
INSERT INTO shares_sink
SELECT p.id, w.name, share(p.part, w.whole) FROM parts AS p JOIN wholes AS w ON p.whole_id = w.id
WHERE wanted(w.name);
"""


@pytest.fixture
def shop(broker: Broker, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(broker, tmp_path)
    (tmp_path / "shares_of_parts.py").write_text(MODULE, encoding="utf-8")
    yield made
    for child in made.running:
        child.stop(0.0)


def test_function_beside_the_job_and_one_that_fails(shop: Shop) -> None:
    shop.create("parts", "wholes", "shares_sink")
    shop.send("wholes", [{"id": 1, "name": "a", "whole": 8}, {"id": 2, "name": "out", "whole": 1}])
    shop.send("wholes", [{"id": 3, "name": None, "whole": 0}])
    shop.send("parts", [{"id": i, "whole_id": i % 3 + 1, "part": i} for i in range(60)])
    bounded = {"scan__bounded__mode": "latest-offset"}
    sql = (
        shop.table("parts", "id BIGINT, whole_id BIGINT, part INT", **bounded)
        + shop.table("wholes", "id BIGINT, name STRING, whole INT", **bounded)
        + shop.table("shares_sink", "id BIGINT, name STRING, share DOUBLE")
        + JOB
    )
    shop.run(sql)
    found = [
        json.loads(message.value() or b"")
        for message in shop.messages("shares_sink", lambda rows: len(rows) >= 40)
    ]
    expected = [(i, "a", i / 8) for i in range(0, 60, 3)]
    expected += [(i, None, None) for i in range(2, 60, 3)]
    assert sorted((r["id"], r["name"], r["share"]) for r in found) == sorted(
        expected, key=lambda row: row[0]
    )

    shop.send("parts", [{"id": 100, "whole_id": 1, "part": -5}])
    child = shop.start(sql, "--no-sidecar", "--checkpoint", str(shop.folder / "other"))
    assert child.wait(shop.within_s), child.log_tail(40)
    log = child.log_tail(60)
    assert child.exit_code == 2, log
    assert "FUNCTION_FAILED" in log
    assert "shares_of_parts.share(-5, 8) raised ValueError: a part is negative" in log
