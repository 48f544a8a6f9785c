"""Constant points in time as epoch milliseconds."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from spark_jobs.sql.types import literals
from spark_jobs.sql.types.expr import Call, Expr, Literal
from spark_jobs.sql.types.literals import LiteralError

_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2})(?::(\d{2}))?")
_UNIT_MS = {0: 1_000, 3: 1}


def instant_ms(expr: Expr, time_zone: str) -> int | None:
    """The point in time that a constant TIMESTAMP_LTZ is, None if it is none.

    A wall clock is that of `time_zone`, as `table.local-time-zone` names it.
    """
    match expr:
        case Call(op="CAST", args=(Literal(value=str() as text),), type=type_):
            if type_.name != "TIMESTAMP_LTZ":
                return None
            try:
                clock = literals.typed("TIMESTAMP", text).value
            except LiteralError:
                return None
            at = datetime.fromisoformat(str(clock)).replace(tzinfo=_zone(time_zone))
            return (at - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)
        case Call(op="TO_TIMESTAMP_LTZ", args=(Literal(value=int() as number), *rest)):
            match rest:
                case []:
                    return number
                case [Literal(value=int() as precision)] if precision in _UNIT_MS:
                    return number * _UNIT_MS[precision]
            return None
        case _:
            return None


def _zone(name: str) -> tzinfo:
    match = _OFFSET.fullmatch(name)
    if match is None:
        return ZoneInfo(name)
    offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    return timezone(-offset if match[1] == "-" else offset)
