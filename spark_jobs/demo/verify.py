"""What the job must write, computed without it: a look-up by time in plain Python.

Nothing here comes from the SQL, the planner or the kernel; the rule is the seed's: an order gets
the version of its product at its own time, and NULLs where there is none.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

from spark_jobs.demo.shop import Change, Order, Product, Record

Place: TypeAlias = tuple[str, int, int]  # topic, partition, offset
Finding: TypeAlias = Literal["right", "wrong", "doubled"]

JOINED_FIELDS = {"order_id", "order_time", "product_name", "product_time", "price"}
_TOLD_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class JoinedRow:
    """A row of the sink; times in epoch milliseconds."""

    order_id: str
    order_ms: int
    product_name: str | None
    product_ms: int | None
    price: Decimal | None


class ProductHistory:
    """Every version of every product; the last change at one time counts."""

    def __init__(self) -> None:
        self._times: dict[str, list[int]] = {}
        self._versions: dict[str, list[Product | None]] = {}

    def add(self, change: Change) -> None:
        """Changes of a product come in the order of their times."""
        self._times.setdefault(change.product_id, []).append(change.time_ms)
        self._versions.setdefault(change.product_id, []).append(change.after)

    def as_of(self, product_id: str | None, time_ms: int) -> tuple[Product, int] | None:
        """The version valid then and since when; None if there is none or it was deleted."""
        times = self._times.get(product_id, []) if product_id is not None else []
        at = bisect_right(times, time_ms) - 1
        version = self._versions[product_id][at] if product_id is not None and at >= 0 else None
        return (version, times[at]) if version is not None else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The counts at the end; `problems` tells the first of what went wrong."""

    orders: int
    right: int
    wrong: int
    missing: int
    doubled: int
    without_product: int
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not (self.wrong or self.missing or self.doubled)


class RowAudit:
    """Compares each row read from the sink with the row that its order must have become.

    An order is forgotten once its row has come, so a demo may run for days: what remains is one
    byte per order, to notice a second row.
    """

    def __init__(self, read_row: Callable[[bytes], JoinedRow]) -> None:
        """`read_row` raises ValueError, TypeError or ArithmeticError for what is no row."""
        self.history = ProductHistory()
        self._read_row = read_row
        self._due: dict[str, Order] = {}
        self._seen = bytearray()
        self._counts: Counter[Finding] = Counter()
        self._without_product = 0
        self._problems: list[str] = []

    @property
    def rows(self) -> int:
        return self._counts.total()

    @property
    def right(self) -> int:
        return self._counts["right"]

    @property
    def due(self) -> int:
        """Orders whose row has not come yet."""
        return len(self._due)

    def expect(self, order: Order) -> None:
        self._due[order.order_id] = order
        self._seen.append(0)

    def check(self, value: bytes | None) -> tuple[Finding, JoinedRow | None]:
        """Judge a record of the sink."""
        finding, row, problem = self._judge(value)
        self._counts[finding] += 1
        if problem and len(self._problems) < _TOLD_PROBLEMS:
            self._problems.append(problem)
        return finding, row

    def verdict(self, complete: bool) -> Verdict:
        """`complete`: no row is on its way any more, so one that has not come is missing."""
        missing = [f"missing: {order_id}" for order_id in self._due] if complete else []
        room = _TOLD_PROBLEMS - len(self._problems)
        return Verdict(
            orders=len(self._seen),
            right=self._counts["right"],
            wrong=self._counts["wrong"],
            missing=len(missing),
            doubled=self._counts["doubled"],
            without_product=self._without_product,
            problems=tuple(self._problems + missing[:room]),
        )

    def expected(self, order: Order) -> JoinedRow:
        found = self.history.as_of(order.product_id, order.time_ms)
        if found is None:
            return JoinedRow(order.order_id, order.time_ms, None, None, None)
        product, since_ms = found
        return JoinedRow(order.order_id, order.time_ms, product.name, since_ms, product.price)

    def _judge(self, value: bytes | None) -> tuple[Finding, JoinedRow | None, str | None]:
        if value is None:
            return "wrong", None, "a tombstone"
        try:
            row = self._read_row(value)
        except (ValueError, TypeError, ArithmeticError) as error:
            return "wrong", None, f"unreadable: {value!r} ({error})"
        order = self._due.pop(row.order_id, None)
        if order is None:
            if self._was_seen(row.order_id):
                return "doubled", row, f"doubled: {row}"
            return "wrong", row, f"never ordered: {row}"
        self._seen[order.number - 1] = 1
        expected = self.expected(order)
        if row != expected:
            return "wrong", row, f"wrong: {row}, expected {expected}"
        self._without_product += row.product_name is None
        return "right", row, None

    def _was_seen(self, order_id: str) -> bool:
        number = order_id.removeprefix("o_")
        at = int(number) - 1 if number.isdigit() else -1
        return 0 <= at < len(self._seen) and self._seen[at] == 1


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of the dead-letter topic: where it came from, why, and its own bytes."""

    place: Place
    reason: str
    key: bytes | None
    value: bytes | None


@dataclass
class LetterAudit:
    """Each broken record must arrive exactly once in the dead-letter topic, byte by byte."""

    sent: dict[Place, Record] = field(default_factory=dict)
    received: list[DeadLetter] = field(default_factory=list)

    @property
    def outstanding(self) -> int:
        return len(self.sent) - len({letter.place for letter in self.received} & set(self.sent))

    def problems(self) -> list[str]:
        """Nothing, if all is as it must be."""
        told = []
        for place, count in Counter(letter.place for letter in self.received).items():
            if place not in self.sent:
                told.append(f"dead letter of a record that is not broken: {place_text(place)}")
            if count > 1:
                told.append(f"{count} dead letters of {place_text(place)}")
        for letter in self.received:
            record = self.sent.get(letter.place)
            if record is not None and (record.key, record.value) != (letter.key, letter.value):
                told.append(f"changed bytes: {place_text(letter.place)} {letter.value!r}")
        arrived = {letter.place for letter in self.received}
        return told + [f"no dead letter of {place_text(p)}" for p in self.sent if p not in arrived]


def place_text(place: Place) -> str:
    """
    >>> place_text(("orders", 1, 42))
    'orders[1]@42'
    """
    topic, partition, offset = place
    return f"{topic}[{partition}]@{offset}"
