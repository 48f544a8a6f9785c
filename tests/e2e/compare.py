"""The result topics folded, and the same queries answered by PostgreSQL, row by row."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import TypeAlias

from confluent_kafka import Message
from psycopg import Connection
from psycopg.rows import dict_row

from tests.e2e.debezium import topic_of
from tests.e2e.topics import read_all
from tests.e2e.wire import DEAD_LETTERS, Fields, Wire

# result topic -> the column that is its key
RESULTS = {
    "order_details": "order_id",
    "customer_totals": "customer_id",
    "fresh_products": "order_id",
}
Rows: TypeAlias = dict[object, Fields]

_KEYS = {"customers": "customer_id", "products": "product_id", "orders": "order_id"}
_TOLD_PLACES = 12
_LEFT_OUT = "__debezium_unavailable_value"
_QUERIES = Path(__file__).with_name("answers.sql")
# column -> its DEFAULT in schema.sql
_DEFAULTS = {"tier": 3, "quantity": 1}


@dataclass
class Events:
    """What the connector wrote: how much of what, and where each key's events are."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    repeated: int = 0
    places: dict[tuple[str, object], list[str]] = field(default_factory=lambda: defaultdict(list))
    # orders whose note a reader can know, and those of which it was known when they got another
    # key; events that leave it out where nobody can know it; the orders that this hides at the end
    known: set[object] = field(default_factory=set)
    moved: set[object] = field(default_factory=set)
    unhealable: set[str] = field(default_factory=set)
    hidden: set[object] = field(default_factory=set)

    def follow(
        self, order_id: object, op: str, note: str | None, place: str, was: object = None
    ) -> None:
        """The next event of an order, in the order of the database's log; `was` is its old key."""
        if op == "d":
            (self.moved.add if order_id in self.known else self.moved.discard)(order_id)
            self.known.discard(order_id)
            self.hidden.discard(order_id)
        elif note == _LEFT_OUT and order_id not in self.known and was not in self.moved:
            self.unhealable.add(place)
            self.hidden.add(order_id)
        else:
            self.known.add(order_id)
            self.hidden.discard(order_id)

    def about(self, row: Fields) -> list[str]:
        """The places of the events behind a result row, oldest first, the last ones of many."""
        told = []
        for table, column in _KEYS.items():
            found = self.places.get((table, row.get(column)), [])
            if found:
                skipped = "... " if len(found) > _TOLD_PLACES else ""
                told.append(f"{table}: {skipped}{' '.join(found[-_TOLD_PLACES:])}")
        return told


def read_events(servers: str, wire: Wire, tables: Sequence[str]) -> Events:
    events = Events()
    seen: set[tuple[object, ...]] = set()
    orders: list[tuple[int, bool, tuple[object, str, str | None, str, object]]] = []
    for table in tables:
        counts = events.counts[topic_of(table)] = Counter()
        for message in read_all(servers, [topic_of(table)]):
            place = f"{message.topic()}[{message.partition()}]@{message.offset()}"
            value = message.value()
            if value is None:
                counts["tombstone"] += 1
                continue
            event = wire.event(value)
            op, row = event["op"], event["after"] or event["before"]
            counts[op] += 1
            key = row[_KEYS[table]]
            events.places[(table, key)].append(f"{place} {op}")
            lsn = event["source"]["lsn"]
            identity = (table, op, key, lsn)
            if table == "orders" and identity not in seen:
                orders.append((lsn, op != "d", (key, op, row["note"], place, _old_key(message))))
            events.repeated += identity in seen
            seen.add(identity)
    for *_, order in sorted(orders, key=lambda found: found[:2]):
        events.follow(*order)
    return events


def _old_key(message: Message) -> object:
    """Of the event under the new key of an order whose primary key has changed."""
    value = dict(message.headers() or ()).get("__debezium.oldkey")
    return None if value is None else json.loads(value)[_KEYS["orders"]]


@dataclass
class Folded:
    """A result topic: its records, and the rows that they leave."""

    records: int
    tombstones: int
    rows: Rows


def fold(servers: str, topic: str, wire: Wire) -> Folded:
    """The last value of each key counts; a null value deletes the row."""
    folded = Folded(0, 0, {})
    for message in read_all(servers, [topic]):
        key = wire.row(message.key() or b"")[RESULTS[topic]]
        value = message.value()
        folded.records += 1
        if value is None:
            folded.tombstones += 1
            folded.rows.pop(key, None)
        else:
            folded.rows[key] = wire.row(value)
    return folded


def answers(database: Connection, wire: Wire, hidden: set[object]) -> dict[str, Rows]:
    """PostgreSQL's own answers by result topic, without the orders that no reader can know.

    Where the converter writes a column's default for its NULLs, no reader can tell them apart, and
    so the default is what the query asks for.
    """
    columns = {
        name: f"coalesce({name}, {default})" if wire.defaults_replace_null else name
        for name, default in _DEFAULTS.items()
    }
    text = Template(_QUERIES.read_text(encoding="utf-8")).substitute(columns)
    found: dict[str, Rows] = {}
    with database.cursor(row_factory=dict_row) as cursor:
        for topic, query in zip(RESULTS, text.split(";"), strict=False):
            cursor.execute(query.encode(), {"hidden": list(hidden)})
            found[topic] = {row[RESULTS[topic]]: row for row in cursor}
    return found


def differences(topic: str, got: Rows, wanted: Rows, events: Events) -> Iterator[str]:
    """A text for each row that is missing, too many or different."""
    for key in sorted(got.keys() | wanted.keys(), key=str):
        if got.get(key) == wanted.get(key):
            continue
        told = f"{topic} {key}: "
        if key not in got:
            told += "missing"
        elif key not in wanted:
            told += "not in the database"
        else:
            told += ", ".join(_unequal(got[key], wanted[key]))
        for place in events.about(wanted.get(key) or got[key]):
            told += f"\n    {place}"
        yield told


def _unequal(got: Fields, wanted: Fields) -> Iterator[str]:
    for name in {**wanted, **got}:
        if got.get(name) != wanted.get(name):
            yield f"{name} is {_short(got.get(name))}, the database says {_short(wanted.get(name))}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}... ({len(text)} characters)"


def read_dead_letters(servers: str) -> dict[str, list[str]]:
    """The places of the rejected records by reason."""
    found: dict[str, list[str]] = defaultdict(list)
    for message in read_all(servers, [DEAD_LETTERS]):
        headers = {
            name: value.decode() if isinstance(value, bytes) else ""
            for name, value in dict(message.headers() or ()).items()
        }
        at = [headers.get(f"__connect.errors.{n}", "?") for n in ("topic", "partition", "offset")]
        found[headers.get("rejoin.reason", "?")].append(f"{at[0]}[{at[1]}]@{at[2]}")
    return dict(found)
