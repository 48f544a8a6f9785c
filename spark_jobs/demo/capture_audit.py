"""What the joins of captured tables must be, computed from the tables' changes in plain Python."""

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

Row: TypeAlias = tuple[object, ...]
Fields: TypeAlias = dict[str, Any]

PROMPT_WITHIN = timedelta(hours=1)


@dataclass(frozen=True, order=True)
class _Version:
    """A customer from a time on; of equal times the later change counts."""

    time_ms: int
    number: int
    row: tuple[str | None, str | None] | None


class CaptureAudit:
    """Takes changes and results in any order. `broken` are results that no order explains."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.changes = 0
        self._versions: dict[int, list[_Version]] = defaultdict(list)
        self._purchases: dict[int, tuple[int, Row]] = {}
        self._bought: dict[int, datetime] = {}
        self._payments: dict[int, tuple[int, object, datetime]] = {}
        self._addressed: Counter[Row] = Counter()
        self._prompt: dict[int, Row] = {}
        self._newest_ms = {"customers": -1, "purchases": -1}

    # --- the changes -----------------------------------------------------------------------------

    def customer(self, event: Fields) -> None:
        time_ms = self._time(event, "customers")
        after = event["after"]
        row = None if after is None else (after["name"], after["address"])
        key = (after or event["before"])["customer_id"]
        insort(self._versions[key], _Version(time_ms, self.changes, row), key=_place)

    def purchase(self, event: Fields) -> None:
        time_ms = self._time(event, "purchases")
        after = event["after"]
        if after is None:
            key = event["before"]["purchase_id"]
            self._purchases.pop(key, None)
            self._bought.pop(key, None)
            return
        key = after["purchase_id"]
        self._purchases[key] = (time_ms, (after["amount"], after["customer_id"]))
        self._bought[key] = _moment(after["bought_at"])

    def payment(self, event: Fields) -> None:
        self.changes += 1
        after = event["after"]
        if after is None:
            self._payments.pop(event["before"]["payment_id"], None)
            return
        paid = _moment(after["paid_at"])
        self._payments[after["payment_id"]] = (after["purchase_id"], after["amount"], paid)

    def _time(self, event: Fields, table: str) -> int:
        self.changes += 1
        time_ms = int(event["source"]["ts_ms"])
        self._newest_ms[table] = max(self._newest_ms[table], time_ms)
        return time_ms

    # --- the results -----------------------------------------------------------------------------

    def addressed(self, event: Fields) -> None:
        """A row comes or is taken back; only one that is there can be."""
        row = _addressed_row(event["before"] if event["op"] == "d" else event["after"])
        if event["op"] != "d":
            self._addressed[row] += 1
        elif self._addressed[row] > 0:
            self._addressed[row] -= 1
        else:
            self.broken.append(f"taken back, but never sent: {row}")

    def prompt(self, payment_id: int, row: Fields | None) -> None:
        if row is None:
            self._prompt.pop(payment_id, None)
        else:
            self._prompt[payment_id] = (
                row["purchase_id"], row["amount"], row["bought_at"], row["paid_at"],
            )  # fmt: skip

    # --- the verdict -----------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """The number of result rows."""
        return self._addressed.total() + len(self._prompt)

    def differences(self) -> Iterator[str]:
        """A text for each row that is missing or too many, now: a job needs its time."""
        yield from self._unaddressed()
        wanted = dict(self._wanted_prompt())
        for key in wanted.keys() | self._prompt.keys():
            if wanted.get(key) != self._prompt.get(key):
                yield f"payment {key}: {self._prompt.get(key)}, should be {wanted.get(key)}"

    def _unaddressed(self) -> Iterator[str]:
        # rows of this very time may have to wait for others of the same
        settled_ms = min(self._newest_ms.values()) - 1
        wanted: Counter[Row] = Counter()
        waiting = set()
        for key, (time_ms, (amount, customer)) in self._purchases.items():
            if time_ms > settled_ms:
                waiting.add(key)
                continue
            name, address = self._customer_at(customer, time_ms)
            wanted[(key, amount, time_ms, customer, name, address)] += 1
        found = Counter({r: n for r, n in self._addressed.items() if r[0] not in waiting and n})
        for row in wanted - found:
            yield f"missing: {row}"
        for row in found - wanted:
            yield f"too many: {row}"

    def _customer_at(self, customer: object, time_ms: int) -> tuple[str | None, str | None]:
        versions = self._versions.get(customer, []) if isinstance(customer, int) else []
        at = bisect_right(versions, time_ms, key=lambda version: version.time_ms)
        row = versions[at - 1].row if at else None
        return row or (None, None)

    def _wanted_prompt(self) -> Iterator[tuple[int, Row]]:
        for key, (purchase, amount, paid) in self._payments.items():
            bought = self._bought.get(purchase)
            if bought is not None and bought <= paid <= bought + PROMPT_WITHIN:
                yield key, (purchase, amount, bought, paid)


def _place(version: _Version) -> tuple[int, int]:
    return version.time_ms, version.number


def _addressed_row(fields: Fields) -> Row:
    time_ms = round(fields["changed_at"].timestamp() * 1_000)
    return (
        fields["purchase_id"], fields["amount"], time_ms,
        fields["customer_id"], fields["name"], fields["address"],
    )  # fmt: skip


def _moment(text: str) -> datetime:
    """Debezium's ZonedTimestamp."""
    return datetime.fromisoformat(text)
