"""The shop of the demo: a stream of orders and of product changes.

The same seed and opening time give the same events. Event times increase strictly within each
table: with `WATERMARK FOR order_time AS order_time`, a row at or below the watermark is late.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal, TypeAlias

ORDERS, PRODUCTS = "orders", "products"
ORDER_PARTITIONS = 2
CLOSING_MS = 1_000  # the closing events are this much later than all others

Op: TypeAlias = Literal["r", "c", "u", "d"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PRICES = {
    "scooter": "11.11",
    "basketball": "23.11",
    "wallet": "39.90",
    "lantern": "17.25",
    "kettle": "32.00",
    "hammock": "58.50",
    "notebook": "4.75",
    "umbrella": "19.99",
    "teapot": "27.4",
    "compass": "14.0625",
    "rain jacket": "89.00",
    "chess set": "45.10",
}
_FEWEST_ON_SALE = 8


@dataclass(frozen=True, slots=True)
class Product:
    """A row of the shop's table `products`."""

    product_id: str
    name: str
    price: Decimal


@dataclass(frozen=True, slots=True)
class Order:
    """An order; `number` counts from 1. An order without a product is a voucher."""

    number: int
    product_id: str | None
    time_ms: int

    @property
    def order_id(self) -> str:
        return f"o_{self.number:06d}"


@dataclass(frozen=True, slots=True)
class ProductChange:
    """A change of one product in the database; `op` is Debezium's, `r` being the snapshot."""

    number: int
    op: Op
    before: Product | None
    after: Product | None
    time_ms: int

    @property
    def product_id(self) -> str:
        row = self.after or self.before
        return row.product_id if row is not None else ""


ShopEvent: TypeAlias = Order | ProductChange


@dataclass(frozen=True, slots=True)
class Record:
    """A Kafka record for one partition of a topic."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


class Shop:
    """Generates the events of the shop.

    At more than one order per millisecond, event time runs faster than the clock, so that no two
    orders have the same time.
    """

    def __init__(
        self, opened_ms: int, orders_per_s: float, changes_per_s: float, seed: int = 4
    ) -> None:
        self._opened_ms = opened_ms
        self._orders_per_s = orders_per_s
        self._changes_per_s = changes_per_s
        self._ms_per_s = 1_000 * max(1.0, orders_per_s / 1_000, changes_per_s / 1_000)
        self._dice = _Dice(seed)
        self._on_sale: dict[str, Product] = {}
        self._removed: list[Product] = []
        self._orders = 0
        self._changes = 0
        self._order_ms = self._change_ms = opened_ms - 1

    def opening(self) -> list[ProductChange]:
        """The products at the start, as Debezium's snapshot of the table."""
        products = [
            Product(f"p_{n:03d}", name, Decimal(price))
            for n, (name, price) in enumerate(_PRICES.items(), start=1)
        ]
        return [self._change("r", None, product, self._opened_ms) for product in products]

    def until(self, seconds: float) -> Iterator[ShopEvent]:
        """The events up to `seconds` after the opening that no earlier call returned, in order."""
        while True:
            order_due = (self._orders + 1) / self._orders_per_s
            # the snapshot does not count towards the rate
            change_due = (self._changes - len(_PRICES) + 0.5) / self._changes_per_s
            if min(order_due, change_due) > seconds:
                return
            if change_due <= order_due:
                yield self._next_change(change_due)
            else:
                yield self._next_order(order_due)

    def closing(self) -> list[ShopEvent]:
        """One change and an order in every partition, all with the same, latest time.

        They move all watermarks to that time, so that every order is joined, these included.
        """
        time_ms = max(self._order_ms, self._change_ms) + CLOSING_MS
        before = self._pick()
        events: list[ShopEvent] = [self._change("u", before, self._repriced(before), time_ms)]
        for _ in range(ORDER_PARTITIONS):
            self._orders += 1
            events.append(Order(self._orders, self._pick().product_id, time_ms))
        self._order_ms = time_ms
        return events

    def _next_order(self, due_s: float) -> Order:
        self._orders += 1
        self._order_ms = max(self._order_ms + 1, self._at(due_s))
        return Order(self._orders, self._ordered_product(), self._order_ms)

    def _ordered_product(self) -> str | None:
        chance = self._dice.below(200)
        if chance == 0:
            return None
        if chance == 1:
            return "p_999"  # there is no such product
        if chance < 20 and self._removed:
            return self._removed[self._dice.below(len(self._removed))].product_id
        return self._pick().product_id

    def _next_change(self, due_s: float) -> ProductChange:
        time_ms = self._at(due_s)
        chance = self._dice.below(10)
        if self._removed and (chance == 0 or len(self._on_sale) <= _FEWEST_ON_SALE):
            again = self._removed.pop(self._dice.below(len(self._removed)))
            return self._change("c", None, self._repriced(again), time_ms)
        before = self._pick()
        if chance <= 2:
            return self._change("d", before, None, time_ms)
        return self._change("u", before, self._repriced(before), time_ms)

    def _change(
        self, op: Op, before: Product | None, after: Product | None, time_ms: int
    ) -> ProductChange:
        self._changes += 1
        self._change_ms = max(self._change_ms + 1, time_ms)
        if after is not None:
            self._on_sale[after.product_id] = after
        elif before is not None:
            self._removed.append(self._on_sale.pop(before.product_id))
        return ProductChange(self._changes, op, before, after, self._change_ms)

    def _pick(self) -> Product:
        return list(self._on_sale.values())[self._dice.below(len(self._on_sale))]

    def _repriced(self, product: Product) -> Product:
        percent = 90 + self._dice.below(22)
        price = (product.price * percent / 100).quantize(Decimal("0.0001"))
        return replace(product, price=min(max(price, Decimal("1.5")), Decimal(900)))

    def _at(self, seconds: float) -> int:
        return self._opened_ms + int(seconds * self._ms_per_s)


class _Dice:
    """Knuth's 64-bit linear congruential generator: the same numbers in every Python version."""

    def __init__(self, seed: int) -> None:
        self._state = (seed + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF

    def below(self, count: int) -> int:
        self._state = self._state * 6364136223846793005 + 1442695040888963407 & 0xFFFFFFFFFFFFFFFF
        return (self._state >> 33) % count


def sql_time(time_ms: int) -> str:
    """A TIMESTAMP(3) as Flink's JSON format writes it by default.

    >>> sql_time(1_597_449_660_001)
    '2020-08-15 00:01:00.001'
    """
    moment = _EPOCH + timedelta(milliseconds=time_ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"
