"""`rejoin.udf`: says of a Python function what its type hints do not."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

RESULT_TYPE = "__rejoin_result_type__"
DETERMINISTIC = "__rejoin_deterministic__"


def udf(*, result_type: str | None = None, deterministic: bool = True) -> Callable[[F], F]:
    """Declare the SQL type that a function gives, such as `DECIMAL(10, 2)`.

    A function that is not deterministic cannot be used: a result that is taken back has to be
    computed again, and would not be found.
    """

    def declared(function: F) -> F:
        setattr(function, RESULT_TYPE, result_type)
        setattr(function, DETERMINISTIC, deterministic)
        return function

    return declared
