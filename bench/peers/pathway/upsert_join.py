"""The workload `regular-upsert` in Pathway; needs its environment. Usage: upsert_join.py JOB.json

A record replaces the row of its key, and a tombstone removes it: Pathway reads records as rows of
their own, so the newest of a key is the one with the highest offset. Each change of the result is a
record with its sign in the header `pathway_diff`.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_FRAME = 5  # bytes of the registry's framing


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    pw = import_module("pathway")  # by name, because linters check this file without Pathway
    orders, shipments = (table(pw, given, topic) for topic in given["topics"])
    head = bytes.fromhex(given["frame"])

    def joined(order: bytes, shipment: bytes | None) -> bytes:
        """Avro of the result: that of the order, then two unions with null."""
        if shipment is None:
            return head + order[_FRAME:] + b"\0\0"
        at = behind_number(shipment, _FRAME)  # the key again
        weight = behind_text(shipment, at)
        return head + order[_FRAME:] + b"\2" + shipment[at:weight] + b"\2" + shipment[weight:]

    result = orders.join_left(shipments, pw.left.id_bytes == pw.right.id_bytes).select(
        key=pw.left.id_bytes,
        value=pw.apply_with_type(joined, bytes, pw.left.data, pw.right.data),
    )
    producer = {"bootstrap.servers": given["servers"], **given["producer"]}
    pw.io.kafka.write(
        result, producer, given["sink"], format="raw", key=result.key, value=result.value
    )
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def table(pw: Any, given: dict[str, Any], topic: str) -> Any:
    """The newest record of each key."""
    consumer = {
        "bootstrap.servers": given["servers"],
        "group.id": f"{given['sink']}-{topic}",
        "auto.offset.reset": "earliest",
    }
    records = pw.io.kafka.read(
        consumer,
        topic=topic,
        format="raw",
        mode=given["mode"],
        # a second record of a key would be an error
        autogenerate_key=True,
        with_metadata=True,
    )
    changes = records.select(
        # both topics have a schema of their own, so that their keys differ in the frame
        id_bytes=pw.apply_with_type(lambda key: key[_FRAME:], bytes, pw.this.key),
        change=pw.make_tuple(pw.this._metadata["offset"].as_int(), pw.this.data),
    )
    newest = changes.groupby(pw.this.id_bytes).reduce(
        pw.this.id_bytes, change=pw.reducers.max(pw.this.change)
    )
    rows = newest.select(pw.this.id_bytes, data=pw.this.change[1])
    return rows.filter(pw.this.data.is_not_none())


def behind_number(data: bytes, at: int) -> int:
    while data[at] > 127:
        at += 1
    return at + 1


def behind_text(data: bytes, at: int) -> int:
    """Texts of this topic are shorter than 64 bytes: their length is one byte, doubled."""
    return at + 1 + data[at] // 2


if __name__ == "__main__":
    main()
