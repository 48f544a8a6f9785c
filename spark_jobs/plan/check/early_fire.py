"""EARLY_FIRE hints: where they cannot be heeded, and where they have no effect."""

from collections.abc import Iterator

from spark_jobs.errors import PositionedError
from spark_jobs.plan.check.problems import unsupported, wrong
from spark_jobs.plan.facts.bounds import fires_early
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.nodes.parts import Advice
from spark_jobs.sql.logical import Join, Logical, nodes


def early_fire_refusals(join: Join) -> Iterator[PositionedError]:
    """A delay in another time than the one that the join goes by."""
    hint, interval = join.early_fire, facts(join).interval
    if hint is None or interval is None or not fires_early(join, interval):
        return
    if hint.time_mode == "rowtime" and interval.time == "proctime":
        yield wrong(
            "EARLY_FIRE_TIME",
            "EARLY_FIRE by event time, but the interval join goes by processing time",
            hint.position,
            "leave out 'time-mode', or compare event times",
        )
    if hint.time_mode == "proctime" and interval.time == "rowtime":
        yield unsupported(
            "EARLY_FIRE_TIME",
            "EARLY_FIRE by processing time of an interval join by event time is not supported",
            hint.position,
            "leave out 'time-mode': the delay then follows the watermark",
        )


def idle_early_fires(optimized: Logical) -> Iterator[Advice]:
    """A warning of each hint that no join of its query heeds."""
    joins = [n for n in nodes(optimized) if isinstance(n, Join) and n.early_fire is not None]
    heeded = {join.early_fire for join in joins if fires_early(join, facts(join).interval)}
    for hint in dict.fromkeys(join.early_fire for join in joins):
        if hint is not None and hint not in heeded:
            yield Advice(
                f"EARLY_FIRE in line {hint.position.line} has no effect: it is about rows that an"
                " outer interval join pads",
                is_warning=True,
            )
