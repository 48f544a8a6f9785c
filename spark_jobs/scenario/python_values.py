"""Python functions in scenarios: values cross as the JSON of the kernel's RowJson."""

import base64
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from spark_jobs.operators.python_column import callable_of
from spark_jobs.plan.nodes.parts import PythonColumn
from spark_jobs.sql.types.data_types import DataType

_READ: dict[str, Callable[[Any], Any]] = {
    "DECIMAL": Decimal,
    "FLOAT": float,
    "DOUBLE": float,
    "DATE": date.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "BYTES": base64.b64decode,
}
_WRITTEN: dict[str, Callable[[Any], Any]] = {
    "DECIMAL": str,
    "DATE": date.isoformat,
    "TIMESTAMP": datetime.isoformat,
    "BYTES": lambda value: base64.b64encode(value).decode(),
}


class PythonValues:
    """A column that Python computes, for rows whose arguments are given as JSON."""

    def __init__(self, column: PythonColumn) -> None:
        self._function = callable_of(column)
        self._types = [field.type for field in column.argument_types.fields]
        self._result = column.type

    def values(self, rows: Sequence[Sequence[Any] | None]) -> list[Any]:
        """The values as JSON; nothing for a row that needs none."""
        return [None if row is None else self._value(row) for row in rows]

    def _value(self, row: Sequence[Any]) -> Any:
        arguments = [_converted(v, t, _READ) for v, t in zip(row, self._types, strict=True)]
        return _converted(self._function(True, *arguments), self._result, _WRITTEN)


def _converted(value: Any, type_: DataType, by_name: dict[str, Callable[[Any], Any]]) -> Any:
    if value is None:
        return None
    if type_.name == "ARRAY" and type_.element is not None:
        return [_converted(item, type_.element, by_name) for item in value]
    convert = by_name.get(type_.name)
    return value if convert is None else convert(value)
