"""Aggregates whose results go by the order of arrival: every change of a group is replayed."""

import math
from collections import Counter
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from struct import pack, unpack
from typing import Any, TypeAlias

Step: TypeAlias = tuple[int, Any]  # +1 or -1, and the value
BY_ARRIVAL = ("FIRST_VALUE", "LAST_VALUE", "LISTAGG", "ARRAY_AGG")
VARIANCES = ("STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP")
SEPARATOR = "; "
_BOUNDS = {"integer": 2**31, "long": 2**63}


def distinct(steps: Iterable[Step]) -> Iterable[Step]:
    """The first copy of each value as it comes, and the last one as it goes."""
    copies: Counter[Any] = Counter()
    for sign, value in steps:
        copies[value] += sign
        if copies[value] == (1 if sign > 0 else 0):
            yield sign, value


def in_order(function: str, steps: Iterable[Step]) -> Any:
    """A retraction takes out the first of the equal values."""
    values: list[Any] = []
    for sign, value in steps:
        if sign > 0:
            values.append(value)
        elif value in values:
            values.remove(value)
    if not values:
        return None
    if function == "LISTAGG":
        return SEPARATOR.join(values)
    return {"FIRST_VALUE": values[0], "LAST_VALUE": values[-1], "ARRAY_AGG": values}[function]


def variance(function: str, steps: Iterable[Step], type_: str) -> Any:
    """Welford's method, forwards and backwards, as Flink and rejoin go."""
    n, mean, squares = 0, 0.0, 0.0
    for sign, value in steps:
        n += sign
        if n == 0:
            mean = squares = 0.0
        if n <= 0:
            continue
        x = float(Decimal(value)) if isinstance(value, str) else float(value)
        before = x - mean
        mean = mean + before / n if sign > 0 else mean - before / n
        change = before * (x - mean)
        squares = squares + change if sign > 0 else squares - change
    divisor = n - 1 if function.endswith("SAMP") else n
    if divisor <= 0 or squares < 0:
        return None
    result = squares / divisor
    return _as(type_, math.sqrt(result) if function.startswith("STDDEV") else result)


def _as(type_: str, value: float) -> Any:
    if type_ in _BOUNDS:
        return max(-_BOUNDS[type_], min(_BOUNDS[type_] - 1, int(value)))
    if type_.startswith("decimal"):
        return format(Decimal(repr(value)).quantize(Decimal("0.000001"), ROUND_HALF_UP), "f")
    if type_ == "float":
        [value] = unpack("<f", pack("<f", value))
    return value
