"""The Kafka source of one scan: where it starts and ends, and its options."""

import json
from collections.abc import Mapping

from pydantic import BaseModel

from spark_jobs.access.topics import Offsets, resolved

# Spark's source sets these itself
_NOT_FOR_SPARK = ("group.id", "auto.offset.reset", "enable.auto.commit")


class ScanStart(BaseModel, frozen=True):
    """Where a scan starts and, if it is bounded, where it ends.

    `loaded`: where the initial content of each partition ends, if rows of a join wait until this
    table is loaded; else None. Partitions without initial content are left out.
    """

    starts: Offsets
    ends: Offsets | None
    loaded: Offsets | None = None


def source_options(
    start: ScanStart, topic_ids: Mapping[str, str], properties: Mapping[str, str]
) -> dict[str, str]:
    """What to read and how; the kernel resolves references in the properties itself."""
    options = {
        "subscribe": ",".join(topic_ids),
        "startingOffsets": offsets_json({t: start.starts[t] for t in topic_ids}),
        # a fetch waits this long for new records; the default, 500 ms, prolongs every epoch
        "kafka.fetch.max.wait.ms": "10",
        # Spark's consumer seeks after each poll: what was fetched and not polled is fetched again
        "kafka.max.partition.fetch.bytes": str(1 << 20),
        "kafka.max.poll.records": "20000",
        "kafka.isolation.level": "read_committed",
        **{f"kafka.{k}": v for k, v in properties.items() if k not in _NOT_FOR_SPARK},
        "rejoin.topic-ids": json.dumps(dict(topic_ids)),
    }
    if "group.id" in properties:
        options["groupIdPrefix"] = resolved(properties["group.id"])
    if start.loaded:
        options["rejoin.loaded"] = offsets_json(start.loaded)
    if start.ends is not None:
        options["rejoin.ends"] = offsets_json(start.ends)
    return options


def known_starts(starts: Offsets) -> Offsets:
    """The topics whose first offsets are known, rather than left to the broker."""
    return {topic: at for topic, at in starts.items() if min(at.values(), default=-1) >= 0}


def offsets_json(offsets: Offsets) -> str:
    """Offsets as Spark's Kafka source reads and writes them.

    >>> offsets_json({"a": {1: 5, 0: 7}})
    '{"a": {"0": 7, "1": 5}}'
    """
    return json.dumps({t: {str(p): o for p, o in sorted(at.items())} for t, at in offsets.items()})
