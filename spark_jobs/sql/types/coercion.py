"""Which types meet in an expression: common types, casts that exist, results of arithmetic."""

from dataclasses import replace

from spark_jobs.sql.types.data_types import (
    APPROXIMATE,
    DATETIMES,
    INTEGER_DIGITS,
    INTEGERS,
    INTERVALS,
    MAX_DECIMAL,
    NUMERIC,
    TIMESTAMPS,
    DataType,
    RowField,
    decimal,
    same_type,
    with_nullable,
)

# division and large results keep at least this many digits after the point
MIN_ADJUSTED_SCALE = 6

_TO_ANY_SCALAR = frozenset(("STRING", "BOOLEAN", *NUMERIC, *DATETIMES))
# casts between different type names; a cast within one name always exists
_CASTS: dict[str, frozenset[str]] = {
    "STRING": frozenset((*_TO_ANY_SCALAR, "BYTES")),
    "BOOLEAN": frozenset(("STRING", *NUMERIC)),
    "BYTES": frozenset(("STRING",)),
    "DATE": frozenset(("STRING", *TIMESTAMPS)),
    "TIME": frozenset(("STRING",)),
    "TIMESTAMP": frozenset(("STRING", "DATE", "TIME", "TIMESTAMP_LTZ")),
    "TIMESTAMP_LTZ": frozenset(("STRING", "DATE", "TIME", "TIMESTAMP")),
    **{n: frozenset(("STRING", "BOOLEAN", *NUMERIC)) for n in NUMERIC},
}
# what each numeric type of a sink takes besides its own
_WIDER_FROM: dict[str, tuple[str, ...]] = {
    **{name: INTEGERS[:i] for i, name in enumerate(INTEGERS)},
    "DECIMAL": NUMERIC,
    "FLOAT": (*INTEGERS, "DECIMAL"),
    "DOUBLE": NUMERIC,
}


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether CAST may be written; the value may still fail at run time."""
    if source.name == "NULL" or same_type(source, target):
        return True
    if source.name != target.name:
        return target.name in _CASTS.get(source.name, frozenset())
    return source.name not in ("ROW", "ARRAY", "MAP") or _renamed(source, target)


def assignable(source: DataType, target: DataType) -> bool:
    """Whether a query column may be written to a sink column without an explicit cast.

    A value may become wider, never of another kind, as in Flink.
    """
    if source.name == "NULL" or same_type(source, target):
        return True
    if source.name == target.name:
        return source.name not in ("ROW", "ARRAY", "MAP") or _renamed(source, target)
    if source.name in NUMERIC:
        return source.name in _WIDER_FROM.get(target.name, ())
    return source.name in TIMESTAMPS and target.name in TIMESTAMPS


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type in which two values can be compared or stand in one column."""
    nullable = left.nullable or right.nullable
    if left.name == "NULL":
        return with_nullable(right, True)
    if right.name == "NULL":
        return with_nullable(left, True)
    found = _common_of(left, right)
    return None if found is None else with_nullable(found, nullable)


def _common_of(left: DataType, right: DataType) -> DataType | None:
    if same_type(left, right):
        return left
    if left.name in NUMERIC and right.name in NUMERIC:
        return _common_numeric(left, right)
    if left.name != right.name:
        return None
    match left.name:
        case "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIME":
            return left if (left.precision or 0) >= (right.precision or 0) else right
        case "ROW" | "ARRAY" | "MAP":
            return _common_nested(left, right)
        case _:
            return left


def _common_numeric(left: DataType, right: DataType) -> DataType:
    names = (left.name, right.name)
    if any(n in APPROXIMATE for n in names):
        mixed = "DECIMAL" in names or "DOUBLE" in names
        return DataType("DOUBLE" if mixed else "FLOAT")
    if "DECIMAL" not in names:
        return DataType(max(names, key=INTEGERS.index))
    (p1, s1), (p2, s2) = digits(left), digits(right)
    scale = max(s1, s2)
    return adjusted_decimal(max(p1 - s1, p2 - s2) + scale, scale)


def _common_nested(left: DataType, right: DataType) -> DataType | None:
    if left.name == "ROW":
        if len(left.fields) != len(right.fields):
            return None
        types = [
            common_type(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=True)
        ]
        found = tuple(
            RowField(f.name, t) for f, t in zip(left.fields, types, strict=True) if t is not None
        )
        return replace(left, fields=found) if len(found) == len(types) else None
    element = _common_part(left.element, right.element)
    key = _common_part(left.key, right.key)
    if element is None or (left.key is not None and key is None):
        return None
    return replace(left, element=element, key=key)


def _common_part(left: DataType | None, right: DataType | None) -> DataType | None:
    return None if left is None or right is None else common_type(left, right)


def _renamed(source: DataType, target: DataType) -> bool:
    """Whether nested types differ only in nullability and field names."""
    if source.name != target.name or len(source.fields) != len(target.fields):
        return False
    parts = [
        *((a.type, b.type) for a, b in zip(source.fields, target.fields, strict=True)),
        *(
            (a, b)
            for a, b in ((source.element, target.element), (source.key, target.key))
            if a and b
        ),
    ]
    if not parts:
        return same_type(source, target)
    return all(_renamed(a, b) for a, b in parts)


def digits(type_: DataType) -> tuple[int, int]:
    """Precision and scale of an exact numeric type."""
    if type_.name == "DECIMAL":
        return type_.precision or 0, type_.scale or 0
    return INTEGER_DIGITS[type_.name], 0


def adjusted_decimal(precision: int, scale: int) -> DataType:
    """A decimal result type; too many digits cost scale first, but never below six."""
    if precision <= MAX_DECIMAL:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(MAX_DECIMAL, max(MAX_DECIMAL - whole, min(scale, MIN_ADJUSTED_SCALE)))


def arithmetic_type(op: str, left: DataType, right: DataType) -> DataType | None:
    """The type of `left op right`, None if the operator does not take these types."""
    nullable = left.nullable or right.nullable
    found = _arithmetic(op, left, right)
    return None if found is None else with_nullable(found, nullable)


def _arithmetic(op: str, left: DataType, right: DataType) -> DataType | None:
    if left.name in NUMERIC and right.name in NUMERIC:
        return _numeric_result(op, left, right)
    if left.name == "NULL" and right.name in NUMERIC:
        return right
    if right.name == "NULL" and left.name in NUMERIC:
        return left
    if op in ("+", "-") and right.name in INTERVALS and left.name in (*DATETIMES, right.name):
        return left
    if op == "+" and left.name in INTERVALS and right.name in DATETIMES:
        return right
    if op == "*" and left.name in INTERVALS and right.name in INTEGERS:
        return left
    if op == "*" and right.name in INTERVALS and left.name in INTEGERS:
        return right
    return None


def _numeric_result(op: str, left: DataType, right: DataType) -> DataType:
    names = (left.name, right.name)
    if "DECIMAL" not in names or any(n in APPROXIMATE for n in names):
        if op == "%" and not any(n in APPROXIMATE for n in names):
            return right
        return _common_numeric(left, right)
    (p1, s1), (p2, s2) = digits(left), digits(right)
    match op:
        case "*":
            return adjusted_decimal(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(MIN_ADJUSTED_SCALE, s1 + p2 + 1)
            return adjusted_decimal(p1 - s1 + s2 + scale, scale)
        case "%":
            scale = max(s1, s2)
            return adjusted_decimal(min(p1 - s1, p2 - s2) + scale, scale)
        case _:
            scale = max(s1, s2)
            return adjusted_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
