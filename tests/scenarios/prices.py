"""Functions of python_functions.scenario."""

from decimal import Decimal

import rejoin


def label(name: str | None, quantity: int) -> str:
    return f"{quantity} x {name or '?'}"


@rejoin.udf(result_type="DECIMAL(10, 2)")
def gross(net: Decimal | None, rate: float = 0.2) -> Decimal | None:
    return None if net is None else net * Decimal(str(1 + rate))


def is_large(quantity: int) -> bool:
    return quantity >= 10


def parts(text: str) -> list[str]:
    return text.split("-")
