"""PySpark's Column expressions as Flink SQL text, which the job's own binder then types.

A Column is read where PySpark keeps it, as nodes in the JVM. Operators and aggregates are SQL's, so
their types are Flink's: whole numbers divide into whole numbers. A function is taken if SQL has one
of the same meaning and refused otherwise. `F.expr(...)` holds a text that nobody has read yet: it
is Flink SQL.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, NoReturn

from pyspark.sql import Column
from pyspark.sql.classic.column import Column as ClassicColumn

from spark_jobs.api.text import interval_text, quoted, string_text
from spark_jobs.errors import UnsupportedError

# how tightly an expression binds, loosest first; what stands inside a tighter one needs parentheses
_TEXT, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _ATOM = range(9)
_NAMED = -1
_INFIX = {
    "or": ("OR", _OR),
    "and": ("AND", _AND),
    "=": ("=", _COMPARISON),
    "!=": ("<>", _COMPARISON),
    "<": ("<", _COMPARISON),
    "<=": ("<=", _COMPARISON),
    ">": (">", _COMPARISON),
    ">=": (">=", _COMPARISON),
    "<=>": ("IS NOT DISTINCT FROM", _COMPARISON),
    "+": ("+", _SUM),
    "-": ("-", _SUM),
    "*": ("*", _PRODUCT),
    "/": ("/", _PRODUCT),
    "%": ("%", _PRODUCT),
}
# PySpark's functions that mean what the SQL function does; docs/functions.md, "Where Flink and
# Spark differ", has the others
_FUNCTIONS = {
    **{name: name.upper() for name in (
        "upper", "lower", "trim", "ltrim", "rtrim", "concat", "concat_ws", "replace", "reverse",
        "repeat", "instr", "regexp_replace", "md5", "coalesce", "nullif", "ifnull", "abs", "round",
        "power", "sqrt", "exp", "year", "quarter", "month", "dayofmonth", "dayofyear", "dayofweek",
        "hour", "minute", "second",
    )},
    "nvl": "IFNULL",
    "pow": "POWER",
    "length": "CHAR_LENGTH",
    "char_length": "CHAR_LENGTH",
    "character_length": "CHAR_LENGTH",
    "rlike": "REGEXP",
}  # fmt: skip
_AGGREGATES = {"sum": "SUM", "count": "COUNT", "min": "MIN", "max": "MAX", "avg": "AVG"}
_ONE_ARGUMENT = ("trim", "ltrim", "rtrim")  # PySpark has the characters to trim as another one
_TYPES = {
    "TIMESTAMP": "TIMESTAMP_LTZ(6)",
    "TIMESTAMP_NTZ": "TIMESTAMP(6)",
    "BINARY": "BYTES",
    **{name: name for name in (
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "DATE",
    )},
}  # fmt: skip
_HINT = 'write it in Flink SQL: expr("...")'


@dataclass(frozen=True, slots=True)
class _Written:
    """The text of an expression and how tightly its outermost operator binds."""

    text: str
    binds: int = _ATOM

    def within(self, binds: int) -> str:
        if self.binds == _NAMED:
            _refuse("an alias inside of an expression", "give the whole of it one")
        return self.text if self.binds >= binds else f"({self.text})"


def sql_text(expression: Column | str) -> str:
    """A Column, or Flink SQL, as Flink SQL.

    Raises:
        UnsupportedError: the Column has no counterpart in SQL.
    """
    return expression if isinstance(expression, str) else _write(_node(expression)).text


def operand_text(expression: Column | str) -> str:
    """The same, as an operand of AND or of arithmetic."""
    if isinstance(expression, str):
        return f"({expression})"
    return _write(_node(expression)).within(_SIGN)


def conjunction(*conditions: Column | str) -> str:
    """All of them, beside AND where there are several."""
    if len(conditions) == 1:
        return sql_text(conditions[0])
    written = [_Written(c, _TEXT) if isinstance(c, str) else _write(_node(c)) for c in conditions]
    return " AND ".join(w.within(_AND) for w in written)


def _node(column: Column) -> Any:
    if not isinstance(column, ClassicColumn):
        kind = f"{type(column).__module__}.{type(column).__qualname__}"
        _refuse(kind, "give a Column of a classic session, or Flink SQL as a text")
    jc: Any = column._jc
    return jc.node()


def _write(node: Any) -> _Written:
    kind = str(node.getClass().getSimpleName())
    writer = _WRITERS.get(kind)
    if writer is None:
        _refuse(_KINDS.get(kind, f"a Column of kind {kind}"), _KIND_HINTS.get(kind, _HINT))
    return writer(node)


def _refuse(what: str, hint: str = _HINT) -> NoReturn:
    raise UnsupportedError("UNSUPPORTED_COLUMN", f"{what} has no counterpart in SQL", hint)


def _attribute(node: Any) -> _Written:
    return _Written(".".join(quoted(str(part)) for part in _items(node.nameParts())))


def _star(node: Any) -> _Written:
    target = node.unparsedTarget()
    return _Written(str(target.get()) if target.isDefined() else "*")


def _sql_expression(node: Any) -> _Written:
    return _Written(str(node.expression()), _TEXT)


def _alias(node: Any) -> _Written:
    names = [str(name) for name in _items(node.name())]
    if len(names) != 1:
        _refuse("an alias of several names")
    return _Written(f"{_write(node.child()).within(_TEXT)} AS {quoted(names[0])}", _NAMED)


def _cast(node: Any) -> _Written:
    mode = str(node.evalMode())
    written = str(node.dataType().sql())
    type_ = written if written.startswith("DECIMAL(") else _TYPES.get(written)
    if type_ is None or ("None" not in mode and "Try" not in mode):
        _refuse(f"a cast to {written}")
    name = "TRY_CAST" if "Try" in mode else "CAST"
    return _Written(f"{name}({_write(node.child()).within(_TEXT)} AS {type_})")


def _case(node: Any) -> _Written:
    parts = ["CASE"]
    for branch in _items(node.branches()):
        condition, result = _write(branch._1()), _write(branch._2())
        parts.append(f"WHEN {condition.within(_TEXT)} THEN {result.within(_TEXT)}")
    otherwise = node.otherwise()
    if otherwise.isDefined():
        parts.append(f"ELSE {_write(otherwise.get()).within(_TEXT)}")
    return _Written(" ".join([*parts, "END"]))


def _extract(node: Any) -> _Written:
    """Only keys of maps: PySpark counts the elements of an array from 0, SQL from 1."""
    key = node.extraction()
    if key.getClass().getSimpleName() != "Literal" or not isinstance(key.value(), str):
        _refuse("an index that counts from 0", 'SQL counts from 1: expr("items[1]")')
    return _Written(f"{_write(node.child()).within(_ATOM)}[{string_text(key.value())}]")


def _literal(node: Any) -> _Written:
    value = node.value()
    match value:
        case None:
            return _Written("NULL")
        case bool():
            return _Written(str(value).upper())
        case str():
            return _Written(string_text(value))
        case bytes() | bytearray():
            return _Written(f"X'{bytes(value).hex()}'")
        case int() | Decimal():
            return _Written(
                f"{value:f}" if isinstance(value, Decimal) else str(value),
                _SIGN if value < 0 else _ATOM,
            )
        case float() if isfinite(value):
            text = repr(value)
            return _Written(text if "e" in text else f"{text}E0", _SIGN if value < 0 else _ATOM)
    return _java_literal(value)


def _java_literal(value: Any) -> _Written:
    kind = str(value.getClass().getName()) if hasattr(value, "getClass") else type(value).__name__
    match kind:
        case "java.time.Duration":
            micros = value.toNanos() // 1_000
            return _Written(interval_text(micros))
        case "java.sql.Date":
            return _Written(f"DATE '{value.toString()}'")
        case "java.math.BigDecimal" | "scala.math.BigDecimal":
            text = str(value.toString())
            return _Written(text, _SIGN if text.startswith("-") else _ATOM)
        case "java.sql.Timestamp":
            hint = "a datetime became an instant: expr(\"TIMESTAMP '2020-08-15 00:00:00'\")"
            _refuse("a datetime", hint)
        case _:
            _refuse(f"a constant of type {kind}")


def _function(node: Any) -> _Written:
    name = str(node.functionName()).lower()
    arguments = list(_items(node.arguments()))
    if node.isUserDefinedFunction():
        _refuse(f"the user-defined function {name}", "compute it before the topic or after it")
    written = [_write(argument) for argument in arguments]
    if name in _AGGREGATES:
        distinct = "DISTINCT " if node.isDistinct() else ""
        values = ", ".join(w.within(_TEXT) for w in written)
        return _Written(f"{_AGGREGATES[name]}({distinct}{values})")
    if name in _FUNCTIONS:
        if name in _ONE_ARGUMENT and len(written) > 1:
            _refuse(f"{name} with characters to trim")
        return _Written(f"{_FUNCTIONS[name]}({', '.join(w.within(_TEXT) for w in written)})")
    return _operator(name, arguments, written)


def _operator(name: str, arguments: list[Any], written: list[_Written]) -> _Written:
    match name, written:
        case _, [left, right] if name in _INFIX:
            return _infix(*_INFIX[name], left, right)
        case (("!" | "not"), [inner]):
            return _not(arguments[0], inner)
        case (("isnull" | "isnotnull"), [inner]):
            test = "IS NULL" if name == "isnull" else "IS NOT NULL"
            return _Written(f"{inner.within(_SUM)} {test}", _COMPARISON)
        case "negative", [inner]:
            return _Written(f"-{inner.within(_ATOM)}", _SIGN)
        case (("in" | "like"), _):
            return _predicate(name.upper(), written)
        case _:
            _refuse(f"PySpark's {name}")


def _infix(sign: str, binds: int, left: _Written, right: _Written) -> _Written:
    # comparisons do not chain, and a - (b - c) keeps its parentheses
    loose = binds in (_OR, _AND)
    first = left.within(binds if binds != _COMPARISON else _SUM)
    second = right.within(binds if loose else binds + 1)
    return _Written(f"{first} {sign} {second}", binds)


def _not(node: Any, inner: _Written) -> _Written:
    """`a <> b` and the like in the form in which people write them."""
    if str(node.getClass().getSimpleName()) == "UnresolvedFunction":
        name = str(node.functionName()).lower()
        written = [_write(argument) for argument in _items(node.arguments())]
        if name == "=":
            return _infix("<>", _COMPARISON, *written)
        if name == "<=>":
            return _infix("IS DISTINCT FROM", _COMPARISON, *written)
        if name == "isnull":
            return _Written(f"{written[0].within(_SUM)} IS NOT NULL", _COMPARISON)
        if name in ("in", "like"):
            return _predicate(f"NOT {name.upper()}", written)
    return _Written(f"NOT {inner.within(_COMPARISON)}", _NOT)


def _predicate(word: str, written: list[_Written]) -> _Written:
    value, *others = written
    if word.endswith("LIKE"):
        pattern = others[0].within(_SUM)
        if len(others) > 1:
            _refuse("LIKE with an escape character")
        return _Written(f"{value.within(_SUM)} {word} {pattern}", _COMPARISON)
    if not others:
        _refuse("isin() of nothing", "lit(False) is never true")
    values = ", ".join(w.within(_TEXT) for w in others)
    return _Written(f"{value.within(_SUM)} {word} ({values})", _COMPARISON)


def _items(sequence: Any) -> Iterator[Any]:
    """Of a Scala collection."""
    found = sequence.iterator()
    while found.hasNext():
        yield found.next()


_WRITERS: dict[str, Callable[[Any], _Written]] = {
    "UnresolvedAttribute": _attribute,
    "UnresolvedStar": _star,
    "SqlExpression": _sql_expression,
    "Alias": _alias,
    "Cast": _cast,
    "CaseWhenOtherwise": _case,
    "UnresolvedExtractValue": _extract,
    "Literal": _literal,
    "UnresolvedFunction": _function,
}
_KINDS = {
    "Window": "a window function",
    "SortOrder": "an order",
    "LambdaFunction": "a lambda",
    "UpdateFields": "withField",
    "ExpressionColumnNode": "a column of a Spark DataFrame or a Python function",
    "InvokeInlineUserDefinedFunction": "a user-defined function",
}
_KIND_HINTS = {
    "ExpressionColumnNode": 'name the column of the table: col("alias.column")',
    "InvokeInlineUserDefinedFunction": "compute it before the topic or after it",
}
