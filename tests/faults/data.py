"""Two topics of upserts and deletions, and what their left join must come to."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

PARTITIONS = 2
_DELETED = 0.08

_JOINED = """\
SELECT l.id, l.left_version, r.right_version
FROM left_side AS l LEFT JOIN right_side AS r ON l.id = r.id;
"""
_INSERTS = f"INSERT INTO upserted {_JOINED}INSERT INTO retracted {_JOINED}"

Change = tuple[int, dict[str, object] | None]


@dataclass(frozen=True, slots=True)
class Data:
    """`rows` changes, half of them on each side, over a key for each ten."""

    rows: int
    seed: int = 1

    def changes(self, side: str) -> Iterator[Change]:
        """Key and row of each change, in order; a row of None deletes the key."""
        draw = random.Random(f"{self.seed}-{side}")  # noqa: S311
        keys = max(self.rows // 10, 1)
        for number in range(self.rows // 2):
            key = draw.randrange(keys)
            if draw.random() < _DELETED:
                yield key, None
            else:
                yield key, {"id": key, f"{side}_version": number}

    def records(self, side: str) -> Iterator[tuple[int, bytes, bytes | None]]:
        """Partition, key and value."""
        for key, row in self.changes(side):
            value = None if row is None else json.dumps(row).encode()
            yield key % PARTITIONS, json.dumps({"id": key}).encode(), value

    def joined(self) -> dict[int, tuple[object, object]]:
        """By key, the versions of both sides once everything has been read."""
        last: dict[str, dict[int, dict[str, object]]] = {"left": {}, "right": {}}
        for side, rows in last.items():
            for key, row in self.changes(side):
                rows.pop(key, None)
                if row is not None:
                    rows[key] = row
        right = last["right"]
        return {
            key: (row["left_version"], right.get(key, {}).get("right_version"))
            for key, row in last["left"].items()
        }


def job_text(
    servers: str, inputs: str, outputs: str, epoch_rows: int, settings: dict[str, str]
) -> str:
    """A left join into an upsert sink and, again, into one of retractions."""
    given = {
        "pipeline.name": outputs,
        "rejoin.parallelism": "2",
        "rejoin.key-groups": "16",
        "rejoin.trigger-interval": "0 ms",
        "rejoin.max-offsets-per-trigger": str(epoch_rows),
        "restart-strategy.exponential-delay.max-backoff": "5 s",
        **settings,
    }
    sets = "".join(f"SET '{name}' = '{value}';\n" for name, value in given.items())
    return sets + _tables(servers, inputs, outputs) + _INSERTS


def _tables(servers: str, inputs: str, outputs: str) -> str:
    broker = f"'properties.bootstrap.servers' = '{servers}'"
    upsert = (
        f"'connector' = 'upsert-kafka', {broker}, 'key.format' = 'json', 'value.format' = 'json'"
    )
    retract = f"'connector' = 'kafka', {broker}, 'value.format' = 'debezium-json'"
    columns = "id BIGINT, left_version BIGINT, right_version BIGINT"
    key = "PRIMARY KEY (id) NOT ENFORCED"
    bounded = "'scan.bounded.mode' = 'latest-offset'"
    sides = "".join(
        f"CREATE TABLE {side}_side (id BIGINT, {side}_version BIGINT, {key})\n"
        f"  WITH ({upsert}, {bounded}, 'topic' = '{inputs}_{side}');\n"
        for side in ("left", "right")
    )
    return (
        f"{sides}"
        f"CREATE TABLE upserted ({columns}, {key})\n"
        f"  WITH ({upsert}, 'topic' = '{outputs}_upserted');\n"
        f"CREATE TABLE retracted ({columns})\n"
        f"  WITH ({retract}, 'topic' = '{outputs}_retracted');\n"
    )
