"""Compares this machine's clock with those of brokers, schema registries and producers.

Kafka has no request for the time. What can be used instead:
- The KRaft controller reports, by its own clock, when it was last caught up. Exact to the
  millisecond; needs the right to describe the cluster.
- A registry's HTTP header `Date`. Exact to the second; says only what the registry's clock is.
- Timestamps of records. One from the future proves that a clock is wrong: the broker's if the
  topic has LogAppendTime, else a producer's. One from the past proves nothing.
"""

from collections.abc import Iterator, Sequence

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

from spark_jobs.check.finding import Finding
from spark_jobs.check.registry import RegistryAnswer
from spark_jobs.check.topics import SampledTable
from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import resolve_public

MOST_S = 2.0
HINT = (
    "synchronise the clocks (NTP): processing time, 'scan.startup.timestamp-millis', TTL after a "
    "move to another machine, OAuth tokens and certificates depend on them"
)


def check_broker_clock(kernel: Kernel, properties: dict[str, str]) -> Finding:
    """Compare with the clock of the cluster's controller."""
    servers = properties["bootstrap.servers"]
    about = f"clock of {servers}"
    answer = kernel.broker_clock(resolve_public(properties))
    if "ms" not in answer:
        text = f"not known: {answer['problem']}"
        return Finding("ok", "CLOCK_UNKNOWN", about, text)
    # the controller read its clock at some moment between `before` and `after`
    ahead_s = (answer["ms"] - (answer["before"] + answer["after"]) / 2) / 1000
    within_s = (answer["after"] - answer["before"]) / 2000
    return _judged(about, ahead_s, within_s, "the controller's own clock")


def check_registry_clock(registry: RegistryAnswer, now_s: float) -> Finding | None:
    """Compare with the `Date` header of an answer that arrived at `now_s`."""
    if registry.clock_s is None:
        return None
    ahead_s = registry.clock_s + 0.5 - now_s
    return _judged(f"clock of {registry.url}", ahead_s, 0.5, "HTTP Date, whole seconds")


def check_record_clocks(sources: Sequence[SampledTable], now_s: float) -> Iterator[Finding]:
    """Warn of sampled records with a timestamp in the future."""
    for source in sources:
        ahead = [m for m in source.newest if m.timestamp()[1] / 1000 - now_s > MOST_S]
        if not ahead:
            continue
        latest = max(ahead, key=lambda m: m.timestamp()[1])
        by_broker = latest.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME
        whose = "the broker's (LogAppendTime)" if by_broker else "a producer's (CreateTime)"
        seconds = latest.timestamp()[1] / 1000 - now_s
        yield Finding(
            "warning",
            "CLOCK_SKEW",
            f"table {source.scan.table}",
            f"{len(ahead)} of the {len(source.newest)} newest records are from the future, by up "
            f"to {seconds:.0f} s; their timestamps are {whose}",
            HINT,
        )


def _judged(about: str, ahead_s: float, within_s: float, source: str) -> Finding:
    side = "ahead of" if ahead_s > 0 else "behind"
    text = f"{abs(ahead_s):.2f} s {side} ours, give or take {within_s:.2f} s ({source})"
    if abs(ahead_s) - within_s > MOST_S:
        return Finding("warning", "CLOCK_SKEW", about, text, HINT)
    return Finding("ok", "CLOCK_AGREES", about, text)
