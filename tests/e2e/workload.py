"""The statements that the database gets: the same ones for the same seed, whatever the speed."""

import copy
import random
import string
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

ADD_COLUMN_AT = 0.4  # of the transactions
_LARGE = 2_300  # characters; more than 2 kB are kept out of the row, if they do not compress
_CUSTOMERS, _PRODUCTS, _ORDERS = 25, 15, 60
_OPENED = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Statement:
    """`kind` is what the report counts it as."""

    kind: str
    sql: str
    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Transaction:
    """Rolled back where it does not commit."""

    statements: tuple[Statement, ...]
    commits: bool = True


Step: TypeAlias = Callable[[], list[Statement]]


@dataclass
class Keys:
    """The rows that are there."""

    customers: list[int] = field(default_factory=list)
    products: list[str] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)


class Workload:
    """Foreign keys hold at every moment; every number is used for one row only."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._keys = Keys()
        self._numbers: Counter[str] = Counter()
        self._has_channel = False
        self._steps: tuple[tuple[int, Step], ...] = (
            (18, self._insert_order),
            (10, self._insert_customer_with_order),
            (14, self._update_amount),
            (7, self._update_note),
            (5, self._update_nothing),
            (6, self._update_to_null),
            (6, self._reassign),
            (9, self._delete_order),
            (4, self._rekey_order),
            (8, self._update_customer),
            (3, self._update_profile),
            (2, self._delete_customer),
            (2, self._rekey_customer),
            (6, self._update_product),
            (3, self._insert_product),
            (1, self._delete_product),
            (1, self._rekey_product),
            (3, self._reprice),
            (2, self._short_life),
            (2, self._insert_again),
        )

    def opening(self) -> Transaction:
        """The rows that the connector finds: they come out as its snapshot."""
        statements: list[Statement] = []
        for _ in range(_CUSTOMERS):
            statements += self._insert_customer()
        for _ in range(_PRODUCTS):
            statements += self._insert_product()
        for _ in range(_ORDERS):
            statements += self._insert_order()
        return Transaction(tuple(statements))

    def transactions(self, count: int) -> Iterator[Transaction]:
        for n in range(count):
            if n == int(count * ADD_COLUMN_AT):
                self._has_channel = True
                added = "ALTER TABLE orders ADD COLUMN channel text"
                yield Transaction((Statement("alter table", added),))
            yield self._transaction()

    def closing(self) -> tuple[Transaction, int]:
        """An order with everything, the last change of all, and its key."""
        customer, product = self._insert_customer(), self._insert_product()
        order = self._insert_order(self._keys.customers[-1], self._keys.products[-1])
        return Transaction((*customer, *product, *order)), self._keys.orders[-1]

    def _transaction(self) -> Transaction:
        if self._dice.random() < 0.04:
            kept = copy.deepcopy(self._keys)
            statements = self._step() + self._step()
            self._keys = kept
            return Transaction(tuple(statements), commits=False)
        several = 3 if self._dice.random() < 0.05 else 1
        return Transaction(tuple(s for _ in range(several) for s in self._step()))

    def _step(self) -> list[Statement]:
        weights = [weight for weight, _ in self._steps]
        (chosen,) = self._dice.choices([step for _, step in self._steps], weights)
        return chosen()

    # --- orders --------------------------------------------------------------------------------

    def _insert_order(
        self, customer: int | None = None, product: str | None = None
    ) -> list[Statement]:
        number = self._next("order")
        self._keys.orders.append(number)
        if customer is None and self._dice.random() < 0.95:
            customer = self._dice.choice(self._keys.customers)
        if product is None and self._dice.random() < 0.95:
            product = self._dice.choice(self._keys.products)
        columns = "order_id, customer_id, product_id, quantity, amount, placed_at, note"
        values: tuple[object, ...] = (number, customer, product, self._quantity())
        values += (self._money(), self._time(), self._text())
        if self._has_channel and self._dice.random() < 0.7:
            columns += ", channel"
            values += (self._dice.choice(["web", "shop", "phone"]),)
        places = ", ".join(["%s"] * len(values))
        sql = f"INSERT INTO orders ({columns}) VALUES ({places})"  # noqa: S608 - ours
        return [Statement("insert", sql, values)]

    def _update_amount(self) -> list[Statement]:
        """A note that is kept out of the row stays as it is: the event has a placeholder for it."""
        sql = "UPDATE orders SET amount = %s, quantity = %s WHERE order_id = %s"
        return [Statement("update", sql, (self._money(), self._quantity(), self._an_order()))]

    def _update_note(self) -> list[Statement]:
        sql = "UPDATE orders SET note = %s WHERE order_id = %s"
        return [Statement("update of a large text", sql, (self._text(), self._an_order()))]

    def _update_nothing(self) -> list[Statement]:
        sql = "UPDATE orders SET amount = amount WHERE order_id = %s"
        return [Statement("update without a change", sql, (self._an_order(),))]

    def _update_to_null(self) -> list[Statement]:
        column = self._dice.choice(["amount", "customer_id", "quantity", "note", "product_id"])
        sql = f"UPDATE orders SET {column} = NULL WHERE order_id = %s"  # noqa: S608 - ours
        return [Statement("update to NULL", sql, (self._an_order(),))]

    def _reassign(self) -> list[Statement]:
        sql = "UPDATE orders SET customer_id = %s, product_id = %s WHERE order_id = %s"
        customer = self._dice.choice(self._keys.customers)
        product = self._dice.choice(self._keys.products)
        return [Statement("update of a foreign key", sql, (customer, product, self._an_order()))]

    def _delete_order(self) -> list[Statement]:
        doomed = self._an_order()
        self._forget_order(doomed)
        return [Statement("delete", "DELETE FROM orders WHERE order_id = %s", (doomed,))]

    def _rekey_order(self) -> list[Statement]:
        old, new = self._an_order(), self._next("order")
        self._forget_order(old)
        self._keys.orders.append(new)
        sql = "UPDATE orders SET order_id = %s WHERE order_id = %s"
        return [Statement("update of the primary key", sql, (new, old))]

    def _short_life(self) -> list[Statement]:
        """Inserted, changed and deleted in one transaction."""
        insert = self._insert_order()
        number = self._keys.orders[-1]
        self._forget_order(number)
        sql = "UPDATE orders SET amount = %s WHERE order_id = %s"
        update = Statement("update", sql, (self._money(), number))
        delete = Statement("delete", "DELETE FROM orders WHERE order_id = %s", (number,))
        return [*insert, update, delete]

    # --- customers -----------------------------------------------------------------------------

    def _insert_customer(self) -> list[Statement]:
        number = self._next("customer")
        self._keys.customers.append(number)
        sql = "INSERT INTO customers VALUES (%s, %s, %s, %s, %s)"
        values = (number, f"customer {number}", self._tier(), self._money(), self._text())
        return [Statement("insert", sql, values)]

    def _insert_customer_with_order(self) -> list[Statement]:
        """One transaction over three tables."""
        customer = self._insert_customer()
        return [*customer, *self._insert_order(self._keys.customers[-1]), *self._update_product()]

    def _update_customer(self) -> list[Statement]:
        sql = "UPDATE customers SET balance = %s, tier = %s WHERE customer_id = %s"
        customer = self._dice.choice(self._keys.customers)
        return [Statement("update", sql, (self._money(), self._tier(), customer))]

    def _update_profile(self) -> list[Statement]:
        sql = "UPDATE customers SET profile = %s WHERE customer_id = %s"
        customer = self._dice.choice(self._keys.customers)
        return [Statement("update of a large text", sql, (self._text(), customer))]

    def _delete_customer(self) -> list[Statement]:
        """The orders' foreign keys become NULL."""
        if len(self._keys.customers) < _CUSTOMERS:
            return self._insert_customer()
        doomed = self._dice.choice(self._keys.customers)
        self._keys.customers.remove(doomed)
        return [Statement("delete", "DELETE FROM customers WHERE customer_id = %s", (doomed,))]

    def _rekey_customer(self) -> list[Statement]:
        """The orders' foreign keys follow."""
        old, new = self._dice.choice(self._keys.customers), self._next("customer")
        self._keys.customers.remove(old)
        self._keys.customers.append(new)
        sql = "UPDATE customers SET customer_id = %s WHERE customer_id = %s"
        return [Statement("update of the primary key", sql, (new, old))]

    # --- products ------------------------------------------------------------------------------

    def _insert_product(self) -> list[Statement]:
        number = self._next("product")
        self._keys.products.append(f"p-{number}")
        values = (f"p-{number}", f"product {number}", self._price(), self._time())
        return [Statement("insert", "INSERT INTO products VALUES (%s, %s, %s, %s)", values)]

    def _update_product(self) -> list[Statement]:
        sql = "UPDATE products SET price = %s, updated_at = %s WHERE product_id = %s"
        product = self._dice.choice(self._keys.products)
        return [Statement("update", sql, (self._price(), self._time(), product))]

    def _reprice(self) -> list[Statement]:
        """One statement, several rows."""
        sql = "UPDATE products SET price = price + 0.0001 WHERE product_id = ANY(%s)"
        chosen = sorted(self._dice.sample(self._keys.products, 4))
        return [Statement("update of several rows", sql, (chosen,))]

    def _delete_product(self) -> list[Statement]:
        if len(self._keys.products) < _PRODUCTS:
            return self._insert_product()
        doomed = self._dice.choice(self._keys.products)
        self._keys.products.remove(doomed)
        return [Statement("delete", "DELETE FROM products WHERE product_id = %s", (doomed,))]

    def _rekey_product(self) -> list[Statement]:
        old, new = self._dice.choice(self._keys.products), f"p-{self._next('product')}"
        self._keys.products.remove(old)
        self._keys.products.append(new)
        sql = "UPDATE products SET product_id = %s WHERE product_id = %s"
        return [Statement("update of the primary key", sql, (new, old))]

    def _insert_again(self) -> list[Statement]:
        """A row goes and another comes under its key, in one transaction."""
        order = self._an_order()
        delete = Statement("delete", "DELETE FROM orders WHERE order_id = %s", (order,))
        sql = "INSERT INTO orders (order_id, amount, placed_at, note) VALUES (%s, %s, %s, %s)"
        values = (order, self._money(), self._time(), self._text())
        return [delete, Statement("insert of a deleted key", sql, values)]

    # --- values --------------------------------------------------------------------------------

    def _next(self, what: str) -> int:
        self._numbers[what] += 1
        return self._numbers[what]

    def _an_order(self) -> int:
        return self._dice.choice(self._keys.orders)

    def _forget_order(self, number: int) -> None:
        self._keys.orders.remove(number)

    def _money(self) -> Decimal:
        return Decimal(self._dice.randrange(-99_999, 9_999_999)) / 100

    def _price(self) -> Decimal | None:
        if self._dice.random() < 0.1:
            return None
        return Decimal(self._dice.randrange(0, 9_999_999)) / 10_000

    def _tier(self) -> int | None:
        return self._dice.choice([1, 2, 3, None])

    def _quantity(self) -> int | None:
        return self._dice.choice([1, 2, 5, 10, None])

    def _time(self) -> datetime:
        return _OPENED + timedelta(microseconds=self._dice.randrange(86_400_000_000))

    def _text(self) -> str | None:
        """Large, small or none."""
        length = self._dice.choice([_LARGE, _LARGE, 12, 0])
        if length == 0:
            return None
        return "".join(self._dice.choices(string.ascii_letters + "äß☃ \"\\'", k=length))
