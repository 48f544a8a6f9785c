"""The figures of docs/delivery.md and docs/semantics.md that stand in the code as constants."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.driver import ownership, query_life, run
from spark_jobs.streaming import session

ROOT = Path(__file__).parents[3]
KERNEL = ROOT / "spark_jobs" / "kernel"


def constant(file: str, pattern: str) -> int:
    found = re.search(pattern, (KERNEL / file).read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1])


_FIGURES: list[tuple[str, str, Callable[[], float]]] = [
    ("delivery.md", r"(\d+) s for the epoch", lambda: query_life.EPOCH_WAIT_S),
    (
        "delivery.md",
        r"(\d+) s for each query",
        lambda: int(session._DEFAULTS["spark.sql.streaming.stopTimeout"].removesuffix("s")),
    ),
    ("delivery.md", r"(\d+) s for the\s+session", lambda: run.STOP_WITHIN_S),
    (
        "delivery.md",
        r"its JVM notices within (0\.\d+) s",
        lambda: constant("spark/run/Lifeline.scala", r"PollMs = (\d+)L") / 1000,
    ),
    ("delivery.md", r"sign of life every (\d+) s", lambda: ownership.BEAT_S),
    (
        "delivery.md",
        r"watches for (\d+) s",
        lambda: ownership._WATCHED_BEATS * ownership.BEAT_S,
    ),
    (
        "delivery.md",
        r"`properties.transaction.timeout.ms` \((\d+) minutes by default\)",
        lambda: (
            constant("spark/sink/KafkaBrokers.scala", r'TRANSACTION_TIMEOUT_CONFIG, "(\d+)"')
            / 60_000
        ),
    ),
    (
        "semantics.md",
        r"has left their slot of\s+(\d+) ms",
        lambda: 2 ** constant("core/time/DueIndex.scala", r"SlotBits = (\d+)"),
    ),
]


@pytest.mark.parametrize(("page", "stated", "meant"), _FIGURES, ids=[f[1] for f in _FIGURES])
def test_figures_are_the_codes(page: str, stated: str, meant: Callable[[], float]) -> None:
    found = re.search(stated, (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert found is not None
    assert float(found[1]) == meant()
