"""Whether this machine's clock is that of the brokers, the registries and the producers.

Kafka has no request for the time. Honest sources, and what each can say:
- the KRaft controller, which tells when it was caught up last by its own clock: to the millisecond,
  where we may describe the cluster;
- a registry's HTTP header `Date`: to the second, and of the registry's machine only;
- timestamps of records: a record from the future proves that some clock is wrong, the broker's
  where the topic has LogAppendTime, else a producer's; one from the past proves nothing.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

from spark_jobs.check.finding import Finding
from spark_jobs.check.registry import Answering
from spark_jobs.check.topics import Source
from spark_jobs.operators.running import resolve_public

MOST_S = 2.0
HINT = (
    "synchronise the clocks (NTP): processing time, 'scan.startup.timestamp-millis', TTL after a "
    "move, OAuth tokens and certificates go by them"
)


def check_broker_clock(kernel: Any, properties: dict[str, str]) -> Finding:
    """Against the controller of the cluster."""
    servers = properties["bootstrap.servers"]
    about = f"clock of {servers}"
    told = json.loads(kernel.brokerClock(json.dumps(resolve_public(properties))))
    if "ms" not in told:
        text = f"not known: {told['problem']}"
        return Finding("ok", "CLOCK_UNKNOWN", about, text)
    # it was read at some moment between our two
    ahead_s = (told["ms"] - (told["before"] + told["after"]) / 2) / 1000
    within_s = (told["after"] - told["before"]) / 2000
    return _judged(about, ahead_s, within_s, "the controller's own clock")


def check_registry_clock(registry: Answering, now_s: float) -> Finding | None:
    """By the header of its answer, which came just now."""
    if registry.clock_s is None:
        return None
    ahead_s = registry.clock_s + 0.5 - now_s
    return _judged(f"clock of {registry.url}", ahead_s, 0.5, "HTTP Date, whole seconds")


def check_record_clocks(sources: Sequence[Source], now_s: float) -> Iterator[Finding]:
    """Records that come from the future."""
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
            f"{len(ahead)} of the {len(source.newest)} newest records are from the future, by "
            f"{seconds:.0f} s at most; the time is {whose}",
            HINT,
        )


def _judged(about: str, ahead_s: float, within_s: float, source: str) -> Finding:
    side = "ahead of" if ahead_s > 0 else "behind"
    text = f"{abs(ahead_s):.2f} s {side} ours, give or take {within_s:.2f} s ({source})"
    if abs(ahead_s) - within_s > MOST_S:
        return Finding("warning", "CLOCK_SKEW", about, text, HINT)
    return Finding("ok", "CLOCK_AGREES", about, text)
