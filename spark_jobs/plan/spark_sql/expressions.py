"""Expressions as Spark SQL text with Flink's meaning, for `spark.sql.ansi.enabled` = false.

Each rendering that is not Spark's own operator of that name is a row of docs/functions.md.
"""

from collections.abc import Callable, Sequence

from spark_jobs.errors import UnsupportedError
from spark_jobs.plan.spark_sql.casts import cast_text
from spark_jobs.plan.spark_sql.functions import function_text
from spark_jobs.plan.spark_sql.types import literal_text, quoted, text
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.expr import Call, Column, Expr, FieldAccess, Literal

_INFIX = ("=", "<>", "<", "<=", ">", ">=", "AND", "OR", "*", "||")
_DAY_MS = 86_400_000
# LIKE has no escape character unless one is named; Spark's default is the backslash
_NO_ESCAPE = "\\u0001"


def render(expr: Expr, names: Sequence[str]) -> str:
    """The Spark SQL text of an expression whose Column(i) is called `names[i]`."""
    match expr:
        case Column(index=index):
            return quoted(names[index])
        case Literal():
            return literal_text(expr)
        case FieldAccess(row=row, field=field):
            return f"{render(row, names)}.{quoted(field)}"
        case Call(args=args):
            return _call(expr, [render(a, names) for a in args])


def _call(call: Call, args: Sequence[str]) -> str:
    if call.op in _INFIX:
        return f"({f' {call.op} '.join(args)})"
    special = _SPECIAL.get(call.op)
    if special is not None:
        return special(call, args)
    # IS NULL, IS NOT TRUE and their like
    return f"({args[0]} {call.op})" if call.op.startswith("IS ") else function_text(args, call)


def _like(call: Call, args: Sequence[str]) -> str:
    if len(args) > 2:
        return f"({args[0]} LIKE {args[1]} ESCAPE {args[2]})"
    pattern = call.args[1]
    plain = isinstance(pattern, Literal) and "\\" not in str(pattern.value)
    escape = "" if plain else f" ESCAPE '{_NO_ESCAPE}'"
    return f"({args[0]} LIKE {args[1]}{escape})"


def _case(_: Call, args: Sequence[str]) -> str:
    pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
    branches = " ".join(f"WHEN {c} THEN {r}" for c, r in pairs)
    return f"(CASE {branches} ELSE {args[-1]} END)"


def _plus_minus(call: Call, args: Sequence[str]) -> str:
    if len(args) == 1:
        return f"(- {args[0]})"
    moved = _moved_time(call, args)
    return moved if moved is not None else f"({args[0]} {call.op} {args[1]})"


def _moved_time(call: Call, args: Sequence[str]) -> str | None:
    """DATE and TIME with an interval: Spark would make a timestamp of one and has not the other."""
    interval = next((e for e in call.args if e.type.name == "INTERVAL_DAY"), None)
    if interval is None or call.type.name not in ("DATE", "TIME"):
        return None
    moved, value = args if call.args[1] is interval else reversed(args)
    if not isinstance(interval, Literal) or not isinstance(interval.value, int):
        raise UnsupportedError(
            "UNSUPPORTED_EXPRESSION", f"{call.type.name} {call.op} {value} is not supported"
        )
    step = interval.value if call.op == "+" else -interval.value
    if call.type.name == "DATE":
        return f"date_add({moved}, {step // _DAY_MS})"
    return f"pmod({moved} + {step}, {_DAY_MS})"


def _divide(call: Call, args: Sequence[str]) -> str:
    left, right = args
    if call.type.name in data_types.APPROXIMATE:
        return _divide_approximate(call.type, left, right)
    op = "/" if call.type.name == "DECIMAL" else "div"
    result = f"{left} {op} {right}"
    if call.type.name in data_types.INTEGERS and call.type.name != "BIGINT":
        # Spark's div gives a BIGINT whatever it divides
        result = f"CAST({result} AS {call.type.name})"
    return _checked(call.args[1], right, f"({result})")


def _divide_approximate(type_: DataType, left: str, right: str) -> str:
    """Java's division: infinities and NaN, where Spark has NULL."""
    by_zero = (
        f"CASE WHEN {left} > 0 AND NOT isnan({left}) THEN CAST('Infinity' AS {type_.name})"
        f" WHEN {left} < 0 THEN CAST('-Infinity' AS {type_.name})"
        f" WHEN {left} IS NOT NULL THEN CAST('NaN' AS {type_.name}) END"
    )
    return f"(CASE WHEN {right} = 0 THEN {by_zero} ELSE CAST({left} / {right} AS {type_.name}) END)"


def _remainder(call: Call, args: Sequence[str]) -> str:
    left, right = args
    if call.type.name in data_types.APPROXIMATE:
        nothing = f"CAST('NaN' AS {call.type.name})"
        return (
            f"(CASE WHEN {right} = 0 AND {left} IS NOT NULL THEN {nothing}"
            f" ELSE {left} % {right} END)"
        )
    return _checked(call.args[1], right, f"({left} % {right})")


def _checked(divisor: Expr, rendered: str, result: str) -> str:
    """Fails the query on a division by zero as Flink does, where Spark has NULL."""
    if isinstance(divisor, Literal) and divisor.value and float(str(divisor.value)) != 0:
        return result
    return (
        f"(CASE WHEN {rendered} = 0 THEN raise_error({text('division by zero')}) ELSE {result} END)"
    )


def _cast(call: Call, args: Sequence[str]) -> str:
    return cast_text(args[0], call.args[0].type, call.type, call.op == "TRY_CAST")


def _item(call: Call, args: Sequence[str]) -> str:
    if call.args[0].type.name == "MAP":
        return f"element_at({args[0]}, {args[1]})"
    return f"get({args[0]}, {args[1]} - 1)"


def _row(call: Call, args: Sequence[str]) -> str:
    names = (text(f.name) for f in call.type.fields)
    pairs = (f"{n}, {a}" for n, a in zip(names, args, strict=True))
    return f"named_struct({', '.join(pairs)})"


def _proctime(call: Call, args: Sequence[str]) -> str:
    raise UnsupportedError(
        "PROCESSING_TIME",
        f"{call.op}({', '.join(args)}) can be declared, but its value cannot be read yet",
        "use a time of the record: METADATA FROM 'timestamp'",
    )


_SPECIAL: dict[str, Callable[[Call, Sequence[str]], str]] = {
    "NOT": lambda _, args: f"(NOT {args[0]})",
    "IS DISTINCT FROM": lambda _, args: f"(NOT ({args[0]} <=> {args[1]}))",
    "IS NOT DISTINCT FROM": lambda _, args: f"({args[0]} <=> {args[1]})",
    "IN": lambda _, args: f"({args[0]} IN ({', '.join(args[1:])}))",
    "BETWEEN": lambda _, args: f"({args[0]} BETWEEN {args[1]} AND {args[2]})",
    "LIKE": _like,
    "SIMILAR TO": lambda _, args: f"rejoin_similar({', '.join([*args, chr(39) * 2][:3])})",
    "IS JSON": lambda _, args: f"coalesce(rejoin_isJson({args[0]}, {args[1]}), false)",
    "CASE": _case,
    "+": _plus_minus,
    "-": _plus_minus,
    "/": _divide,
    "%": _remainder,
    "MOD": _remainder,
    "CAST": _cast,
    "TRY_CAST": _cast,
    "ITEM": _item,
    # an array as long as the row has copies, for UNNEST; nobody reads its elements
    "REPEAT_ROW": lambda _, args: f"array_repeat(1, CAST({args[0]} AS INT))",
    "ROW": _row,
    "PROCTIME": _proctime,
}
