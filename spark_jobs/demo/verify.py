"""Computes in plain Python what the job must write, and compares its rows with that.

Shares no code with the SQL, the planner or the kernel. The rule: an order gets the version of its
product that was valid at the order's time, and NULLs if there was none.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

from spark_jobs.demo.shop import Order, Product, ProductChange, Record

TopicPosition: TypeAlias = tuple[str, int, int]  # topic, partition, offset
RowVerdict: TypeAlias = Literal["right", "wrong", "doubled"]

JOINED_FIELDS = {"order_id", "order_time", "product_name", "product_time", "price"}
_SHOWN_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class JoinedRow:
    """A row of the sink; times in epoch milliseconds."""

    order_id: str
    order_ms: int
    product_name: str | None
    product_ms: int | None
    price: Decimal | None


class ProductHistory:
    """All versions of all products; of several changes at one time the last one counts."""

    def __init__(self) -> None:
        self._times: dict[str, list[int]] = {}
        self._versions: dict[str, list[Product | None]] = {}

    def add(self, change: ProductChange) -> None:
        """Add a change; the changes of a product must arrive in the order of their times."""
        self._times.setdefault(change.product_id, []).append(change.time_ms)
        self._versions.setdefault(change.product_id, []).append(change.after)

    def as_of(self, product_id: str | None, time_ms: int) -> tuple[Product, int] | None:
        """The version valid at `time_ms` and its start; None if the product did not exist then."""
        times = self._times.get(product_id, []) if product_id is not None else []
        at = bisect_right(times, time_ms) - 1
        version = self._versions[product_id][at] if product_id is not None and at >= 0 else None
        return (version, times[at]) if version is not None else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The final counts, and the first few problems."""

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
    """Compares each row of the sink with the row expected for its order.

    A demo may run for days, so an order is forgotten once its row has arrived. What remains is one
    byte per order, to detect a second row.
    """

    def __init__(self, read_row: Callable[[bytes], JoinedRow]) -> None:
        """`read_row` raises ValueError, TypeError or ArithmeticError if the value is no row."""
        self.history = ProductHistory()
        self._read_row = read_row
        self._due: dict[str, Order] = {}
        self._seen = bytearray()
        self._counts: Counter[RowVerdict] = Counter()
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
        """Number of orders whose row has not arrived yet."""
        return len(self._due)

    def expect(self, order: Order) -> None:
        self._due[order.order_id] = order
        self._seen.append(0)

    def check(self, value: bytes | None) -> tuple[RowVerdict, JoinedRow | None]:
        """Check the value of a sink record."""
        finding, row, problem = self._judge(value)
        self._counts[finding] += 1
        if problem and len(self._problems) < _SHOWN_PROBLEMS:
            self._problems.append(problem)
        return finding, row

    def verdict(self, complete: bool) -> Verdict:
        """If `complete`, no more rows will arrive: an order without a row counts as missing."""
        missing = [f"missing: {order_id}" for order_id in self._due] if complete else []
        room = _SHOWN_PROBLEMS - len(self._problems)
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

    def _judge(self, value: bytes | None) -> tuple[RowVerdict, JoinedRow | None, str | None]:
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
            return "wrong", row, f"no such order: {row}"
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
class ReceivedDeadLetter:
    """A record of the dead-letter topic: its source position, the reason and its bytes."""

    position: TopicPosition
    reason: str
    key: bytes | None
    value: bytes | None


@dataclass
class DeadLetterAudit:
    """Checks that each broken record arrives in the dead-letter topic once and unchanged."""

    sent: dict[TopicPosition, Record] = field(default_factory=dict)
    received: list[ReceivedDeadLetter] = field(default_factory=list)

    @property
    def outstanding(self) -> int:
        return len(self.sent) - len({item.position for item in self.received} & set(self.sent))

    def problems(self) -> list[str]:
        """Dead letters that are missing, repeated, changed or unexpected."""
        found = []
        counts = Counter(item.position for item in self.received)
        for position, count in counts.items():
            if position not in self.sent:
                found.append(f"dead letter of an intact record: {position_text(position)}")
            if count > 1:
                found.append(f"{count} dead letters of {position_text(position)}")
        for item in self.received:
            record = self.sent.get(item.position)
            if record is not None and (record.key, record.value) != (item.key, item.value):
                found.append(f"changed bytes: {position_text(item.position)} {item.value!r}")
        missing = (position for position in self.sent if position not in counts)
        return found + [f"no dead letter of {position_text(position)}" for position in missing]


def position_text(position: TopicPosition) -> str:
    """
    >>> position_text(("orders", 1, 42))
    'orders[1]@42'
    """
    topic, partition, offset = position
    return f"{topic}[{partition}]@{offset}"
