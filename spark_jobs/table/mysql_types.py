"""SQL types of MySQL's columns, as Canal names them in its records."""

import re
from collections.abc import Callable, Mapping

from spark_jobs.sql.types.data_types import BIGINT, INT, STRING, DataType
from spark_jobs.table.columns import Column

_TYPE = re.compile(r"(?P<name>[a-z ]+?)\s*(?:\((?P<args>[\d, ]*)\))?(?P<unsigned> unsigned)?( .*)?")
_MOST_DIGITS = 38
_SMALL = DataType("SMALLINT")
# by name: the type, and the type of an unsigned column
_NUMBERS = {
    "tinyint": (DataType("TINYINT"), _SMALL),
    "smallint": (_SMALL, INT),
    "mediumint": (INT, INT),
    "int": (INT, BIGINT),
    "integer": (INT, BIGINT),
    "bigint": (BIGINT, DataType("DECIMAL", precision=20, scale=0)),
    "float": (DataType("FLOAT"), DataType("FLOAT")),
    "double": (DataType("DOUBLE"), DataType("DOUBLE")),
    "year": (INT, INT),
}


def mysql_columns(types: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns of a table of MySQL."""
    return tuple(_column(name, text) for name, text in types.items())


def _column(name: str, text: str) -> Column:
    """
    >>> _column("price", "decimal(10,2)").type.sql(), _column("n", "INT(11) UNSIGNED").type.sql()
    ('DECIMAL(10, 2)', 'BIGINT')
    """
    match = _TYPE.fullmatch(text.lower())
    if match is None:
        return Column(name, STRING, f"{text} of MySQL")
    args = [int(digits) for digits in re.findall(r"\d+", match["args"] or "")]
    known = match["name"]
    if known in _NUMBERS:
        signed, unsigned = _NUMBERS[known]
        return Column(name, unsigned if match["unsigned"] else signed)
    if known in _OTHERS:
        return _OTHERS[known](name, args)
    is_bytes = known.endswith(("blob", "binary"))
    note = "bytes, one character each, as Canal writes them" if is_bytes else None
    return Column(name, STRING, note)


def _decimal(name: str, args: list[int]) -> Column:
    precision, scale = (*args, 0)[:2] if args else (10, 0)
    if precision > _MOST_DIGITS:
        return Column(name, STRING, f"decimal({precision}, {scale}): more digits than DECIMAL has")
    return Column(name, DataType("DECIMAL", precision=precision, scale=scale))


def _timestamp(name: str, args: list[int]) -> Column:
    precision = 6 if args and args[0] > 3 else 3
    return Column(name, DataType("TIMESTAMP", precision=precision), unit="text")


_OTHERS: Mapping[str, Callable[[str, list[int]], Column]] = {
    "decimal": _decimal,
    "numeric": _decimal,
    "datetime": _timestamp,
    "timestamp": _timestamp,
    "date": lambda name, _: Column(name, DataType("DATE")),
    "time": lambda name, _: Column(name, DataType("TIME", precision=3)),
}
