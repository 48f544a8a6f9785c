"""How a Python function of the user is called, in a Python worker of Spark or in `rejoin test`.

Workers get this module by value, with the function, so it uses Python's own library alone.
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_PLAIN: dict[str, tuple[tuple[type, ...], Callable[[Any], Any]]] = {
    "STRING": ((str,), str),
    "BOOLEAN": ((bool,), bool),
    "BYTES": ((bytes, bytearray), bytes),
    "FLOAT": ((float, int), float),
    "DOUBLE": ((float, int), float),
}
_MOST_SHOWN = 200


class FunctionFailure(RuntimeError):
    """A Python function raised an exception, or gave a value that its type does not have."""


class Computed:
    """A function as SQL calls it; `result` is its type: a name, then precision and scale.

    Of ARRAY the element's type follows in place of these.
    """

    def __init__(self, name: str, function: Callable[..., Any], result: Sequence[Any]) -> None:
        self.name = name
        self.function = function
        self.result = tuple(result)

    def __call__(self, is_needed: bool, *arguments: Any) -> Any:
        """The value, or None where nobody reads it.

        Raises:
            FunctionFailure: with the arguments, which tell the row.
        """
        if not is_needed:
            return None
        try:
            return _typed(self.function(*arguments), self.result)
        except Exception as error:
            given = ", ".join(map(repr, arguments))
            shown = given if len(given) <= _MOST_SHOWN else f"{given[:_MOST_SHOWN]}..."
            what = f"{type(error).__name__}: {error}"
            raise FunctionFailure(f"{self.name}({shown}) raised {what}") from error


def _typed(value: Any, result: tuple[Any, ...]) -> Any:
    """The value as one of the type; raises TypeError or ValueError if it is none."""
    name, *rest = result
    if value is None:
        return None
    match name:
        case "ARRAY" if isinstance(value, (list, tuple)):
            return [_typed(item, rest[0]) for item in value]
        case "DECIMAL" if isinstance(value, (Decimal, int)) and not isinstance(value, bool):
            return _decimal(Decimal(value), *rest)
        case "DATE" if isinstance(value, date) and not isinstance(value, datetime):
            return value
        case "TIMESTAMP" if isinstance(value, datetime) and value.tzinfo is None:
            return value
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return _integer(value, name)
        case _ if name in _PLAIN and isinstance(value, _PLAIN[name][0]):
            if isinstance(value, bool) and name != "BOOLEAN":
                raise TypeError(f"the result {value!r} is a bool, not {name}")
            return _PLAIN[name][1](value)
        case _:
            raise TypeError(f"the result {value!r} is a {type(value).__name__}, not {name}")


def _integer(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"the result {value!r} is a {type(value).__name__}, not {name}")
    bits = _INTEGERS[name]
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"the result {value} is out of the range of {name}")
    return value


def _decimal(value: Decimal, precision: int, scale: int) -> Decimal:
    if not value.is_finite():
        raise ValueError(f"the result {value} is no DECIMAL")
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=precision + 40))
    if len(rounded.as_tuple().digits) > precision:
        raise ValueError(f"the result {value} has more digits than DECIMAL({precision}, {scale})")
    return rounded
