"""The options of the kernel's Kafka source, which extends Spark's."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_jobs.access.topics import Offsets, resolved

# Spark's source sets these itself
_NOT_FOR_SPARK = ("group.id", "auto.offset.reset", "enable.auto.commit")


@dataclass(frozen=True, slots=True)
class Subscription:
    """What the Kafka source of one scan reads.

    `loaded`: per partition, the offset at which its initial content is complete. `alignment`: JSON
    of the kernel's Alignment, if the table waits for other tables' watermarks.
    """

    query: str
    table: str
    topics: tuple[str, ...]
    starts: Offsets
    ends: Offsets | None
    properties: Mapping[str, str]
    max_offsets: int
    headers: bool
    loaded: Offsets | None = None
    alignment: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    fails_on_data_loss: bool = True

    def options(self) -> dict[str, str]:
        """Options of the kernel's Kafka source, which resolves the references in them itself."""
        properties = self.properties
        options = {
            "subscribe": ",".join(self.topics),
            "startingOffsets": offsets_json(self.starts),
            "maxOffsetsPerTrigger": str(self.max_offsets),
            "includeHeaders": str(self.headers).lower(),
            # the default of 500 ms delays the end of every epoch
            "kafka.fetch.max.wait.ms": "10",
            "kafka.max.partition.fetch.bytes": str(4 << 20),
            "kafka.max.poll.records": "5000",
            "kafka.isolation.level": "read_committed",
            **{f"kafka.{k}": v for k, v in properties.items() if k not in _NOT_FOR_SPARK},
            "failOnDataLoss": str(self.fails_on_data_loss).lower(),
            "rejoin.query": self.query,
            "rejoin.table": self.table,
            "rejoin.topic-ids": json.dumps(dict(self.topic_ids)),
        }
        if "group.id" in properties:
            options["groupIdPrefix"] = resolved(properties["group.id"])
        if self.loaded:
            options["rejoin.loaded"] = offsets_json(self.loaded)
        if self.alignment is not None:
            options["rejoin.alignment"] = self.alignment
        if self.ends is not None:
            options["rejoin.ends"] = offsets_json(self.ends)
        return options


def offsets_json(offsets: Offsets) -> str:
    """Offsets as Spark's Kafka source reads and writes them.

    >>> offsets_json({"a": {1: 5, 0: 7}})
    '{"a": {"0": 7, "1": 5}}'
    """
    return json.dumps({t: {str(p): o for p, o in sorted(at.items())} for t, at in offsets.items()})
