"""Inserts the casts that Flink makes by itself: wider numbers, constants, common types."""

from collections.abc import Sequence

from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.coercion import arithmetic_type, common_type, digits
from spark_jobs.sql.types.data_types import DataType, same_type, with_nullable
from spark_jobs.sql.types.expr import Call, Expr, Literal
from spark_jobs.sql.types.literals import converted
from spark_jobs.sql.types.type_text import Length


def cast(expr: Expr, target: DataType) -> Expr:
    """The expression as another type; the same expression if it has that type.

    Raises:
        LiteralError: a constant text is not a constant of the type.
    """
    if same_type(expr.type, target):
        return expr
    nullable = expr.type.nullable
    if isinstance(expr, Literal):
        constant = converted(expr, target)
        if constant is not None:
            return constant
    return Call("CAST", (expr,), with_nullable(target, nullable))


def unified(exprs: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """All expressions as their common type; None if they have none."""
    target = data_types.NULL
    for expr in exprs:
        merged = common_type(target, expr.type)
        if merged is None:
            return None
        target = merged
    return tuple(cast(e, target) for e in exprs)


def of_length(text: Expr, length: Length) -> Expr:
    """A text as VARCHAR(n) or CHAR(n): cut off behind n characters, CHAR(n) filled with blanks."""
    nullable = text.type.nullable
    count = Literal(length.count, with_nullable(data_types.INT, False))
    if isinstance(text, Literal) and isinstance(text.value, str):
        cut = text.value[: length.count]
        return Literal(cut.ljust(length.count) if length.fixed else cut, text.type)
    type_ = with_nullable(data_types.STRING, nullable)
    if not length.fixed:
        return Call("LEFT", (text, count), type_)
    blank = Literal(" ", with_nullable(data_types.STRING, False))
    return Call("RPAD", (text, count, blank), type_)


def comparable(left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
    """Both sides in the type in which they are compared; None if there is none.

    A constant text that is compared with a time is read as that time. For any other pair of
    different kinds the query has to say CAST.
    """
    for text, other in ((left, right), (right, left)):
        if _is_text(text) and other.type.name in data_types.DATETIMES:
            return cast(left, other.type), cast(right, other.type)
    target = common_type(left.type, right.type)
    if target is None or _has_map(target):
        return None
    names = (left.type.name, right.type.name)
    if "DECIMAL" in names and "NULL" not in names and target.name == "DECIMAL":
        return _as_decimal(left, target), _as_decimal(right, target)
    return cast(left, target), cast(right, target)


def arithmetic(op: str, left: Expr, right: Expr) -> Expr | None:
    """`left op right` with its operands cast; None if the operator does not take these types."""
    result = arithmetic_type(op, left.type, right.type)
    if result is None:
        return None
    if left.type.name in data_types.NUMERIC and right.type.name in data_types.NUMERIC:
        if result.name == "DECIMAL":
            return Call(op, (_exact(left), _exact(right)), result)
        shared = common_type(left.type, right.type) or result
        call = Call(op, (cast(left, shared), cast(right, shared)), _of(shared, result.nullable))
        return cast(call, result)
    return Call(op, (left, right), result)


def _of(type_: DataType, nullable: bool) -> DataType:
    return with_nullable(type_, nullable)


def _exact(expr: Expr) -> Expr:
    """A number as a DECIMAL of its own digits."""
    if expr.type.name == "DECIMAL":
        return expr
    return cast(expr, data_types.decimal(*digits(expr.type)))


def _as_decimal(expr: Expr, target: DataType) -> Expr:
    """For a comparison; digits beyond the target's would be lost, so wide ones stay as they are."""
    precision, scale = digits(expr.type)
    fits = precision - scale <= (target.precision or 0) - (target.scale or 0)
    return cast(expr, target) if fits and scale <= (target.scale or 0) else expr


def _is_text(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.type.name == "STRING"


def _has_map(type_: DataType) -> bool:
    parts = (*(f.type for f in type_.fields), *(t for t in (type_.element, type_.key) if t))
    return type_.name == "MAP" or any(map(_has_map, parts))
