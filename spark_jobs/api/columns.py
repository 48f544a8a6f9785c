"""Converts PySpark's Column expressions to Flink SQL text, which the job's binder then types.

PySpark keeps a Column as a tree of nodes in the JVM, which is read here. Operators and aggregates
have Flink's types: dividing two integers gives an integer. A function is accepted only if Flink SQL
has one of the same meaning. The text of `F.expr(...)` is taken as Flink SQL.
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

# precedence, loosest first; an operand that binds less tightly than its operator needs parentheses
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
# PySpark's functions that mean the same in Flink SQL; the SQL reference lists the others under
# "Where Flink and Spark differ"
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
_ONE_ARGUMENT = ("trim", "ltrim", "rtrim")  # PySpark also takes the characters to trim
_TYPES = {
    "TIMESTAMP": "TIMESTAMP_LTZ(6)",
    "TIMESTAMP_NTZ": "TIMESTAMP(6)",
    "BINARY": "BYTES",
    **{name: name for name in (
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "DATE",
    )},
}  # fmt: skip
_HINT = 'write it in Flink SQL: expr("...")'
_UDF_HINT = "compute the value before the source topic or after the sink topic"


@dataclass(frozen=True, slots=True)
class _SqlText:
    """The text of an expression and the precedence of its outermost operator."""

    text: str
    precedence: int = _ATOM

    def within(self, precedence: int) -> str:
        if self.precedence == _NAMED:
            _refuse("an alias inside an expression", "give the whole expression an alias")
        return self.text if self.precedence >= precedence else f"({self.text})"


def sql_text(expression: Column | str) -> str:
    """Flink SQL of a Column; a string is taken as Flink SQL already.

    Raises:
        UnsupportedError: the Column has no counterpart in Flink SQL.
    """
    return expression if isinstance(expression, str) else _to_sql(_node(expression)).text


def operand_text(expression: Column | str) -> str:
    """Flink SQL of an operand of AND or of arithmetic, in parentheses where needed."""
    if isinstance(expression, str):
        return f"({expression})"
    return _to_sql(_node(expression)).within(_SIGN)


def conjunction(*conditions: Column | str) -> str:
    """The conditions, combined with AND."""
    if len(conditions) == 1:
        return sql_text(conditions[0])
    written = [_SqlText(c, _TEXT) if isinstance(c, str) else _to_sql(_node(c)) for c in conditions]
    return " AND ".join(w.within(_AND) for w in written)


def _node(column: Column) -> Any:
    if not isinstance(column, ClassicColumn):
        kind = f"{type(column).__module__}.{type(column).__qualname__}"
        _refuse(kind, "use a Column of a classic session, or Flink SQL as a string")
    jc: Any = column._jc
    return jc.node()


def _to_sql(node: Any) -> _SqlText:
    kind = str(node.getClass().getSimpleName())
    convert = _CONVERTERS.get(kind)
    if convert is None:
        _refuse(_NODE_NAMES.get(kind, f"a Column of kind {kind}"), _NODE_HINTS.get(kind, _HINT))
    return convert(node)


def _refuse(what: str, hint: str = _HINT) -> NoReturn:
    raise UnsupportedError("UNSUPPORTED_COLUMN", f"{what} has no counterpart in Flink SQL", hint)


def _attribute(node: Any) -> _SqlText:
    return _SqlText(".".join(quoted(str(part)) for part in _items(node.nameParts())))


def _star(node: Any) -> _SqlText:
    target = node.unparsedTarget()
    return _SqlText(str(target.get()) if target.isDefined() else "*")


def _sql_expression(node: Any) -> _SqlText:
    return _SqlText(str(node.expression()), _TEXT)


def _alias(node: Any) -> _SqlText:
    names = [str(name) for name in _items(node.name())]
    if len(names) != 1:
        _refuse("an alias of several names")
    return _SqlText(f"{_to_sql(node.child()).within(_TEXT)} AS {quoted(names[0])}", _NAMED)


def _cast(node: Any) -> _SqlText:
    mode = str(node.evalMode())
    written = str(node.dataType().sql())
    type_ = written if written.startswith("DECIMAL(") else _TYPES.get(written)
    if type_ is None or ("None" not in mode and "Try" not in mode):
        _refuse(f"a cast to {written}")
    name = "TRY_CAST" if "Try" in mode else "CAST"
    return _SqlText(f"{name}({_to_sql(node.child()).within(_TEXT)} AS {type_})")


def _case(node: Any) -> _SqlText:
    parts = ["CASE"]
    for branch in _items(node.branches()):
        condition, result = _to_sql(branch._1()), _to_sql(branch._2())
        parts.append(f"WHEN {condition.within(_TEXT)} THEN {result.within(_TEXT)}")
    otherwise = node.otherwise()
    if otherwise.isDefined():
        parts.append(f"ELSE {_to_sql(otherwise.get()).within(_TEXT)}")
    return _SqlText(" ".join([*parts, "END"]))


def _extract(node: Any) -> _SqlText:
    """An entry of a map. Array elements are refused: PySpark counts from 0, SQL from 1."""
    key = node.extraction()
    if key.getClass().getSimpleName() != "Literal" or not isinstance(key.value(), str):
        _refuse("an array index", 'it counts from 0 in PySpark and from 1 in SQL: expr("items[1]")')
    return _SqlText(f"{_to_sql(node.child()).within(_ATOM)}[{string_text(key.value())}]")


def _literal(node: Any) -> _SqlText:
    value = node.value()
    match value:
        case None:
            return _SqlText("NULL")
        case bool():
            return _SqlText(str(value).upper())
        case str():
            return _SqlText(string_text(value))
        case bytes() | bytearray():
            return _SqlText(f"X'{bytes(value).hex()}'")
        case int() | Decimal():
            return _SqlText(
                f"{value:f}" if isinstance(value, Decimal) else str(value),
                _SIGN if value < 0 else _ATOM,
            )
        case float() if isfinite(value):
            text = repr(value)
            return _SqlText(text if "e" in text else f"{text}E0", _SIGN if value < 0 else _ATOM)
    return _java_literal(value)


def _java_literal(value: Any) -> _SqlText:
    kind = str(value.getClass().getName()) if hasattr(value, "getClass") else type(value).__name__
    match kind:
        case "java.time.Duration":
            micros = value.toNanos() // 1_000
            return _SqlText(interval_text(micros))
        case "java.sql.Date":
            return _SqlText(f"DATE '{value.toString()}'")
        case "java.math.BigDecimal" | "scala.math.BigDecimal":
            text = str(value.toString())
            return _SqlText(text, _SIGN if text.startswith("-") else _ATOM)
        case "java.sql.Timestamp":
            hint = "PySpark has made an instant of it: expr(\"TIMESTAMP '2020-08-15 00:00:00'\")"
            _refuse("a datetime", hint)
        case _:
            _refuse(f"a constant of type {kind}")


def _function(node: Any) -> _SqlText:
    name = str(node.functionName()).lower()
    arguments = list(_items(node.arguments()))
    if node.isUserDefinedFunction():
        _refuse(f"the user-defined function {name}", _UDF_HINT)
    written = [_to_sql(argument) for argument in arguments]
    if name in _AGGREGATES:
        distinct = "DISTINCT " if node.isDistinct() else ""
        values = ", ".join(w.within(_TEXT) for w in written)
        return _SqlText(f"{_AGGREGATES[name]}({distinct}{values})")
    if name in _FUNCTIONS:
        if name in _ONE_ARGUMENT and len(written) > 1:
            _refuse(f"{name} with characters to trim")
        return _SqlText(f"{_FUNCTIONS[name]}({', '.join(w.within(_TEXT) for w in written)})")
    return _operator(name, arguments, written)


def _operator(name: str, arguments: list[Any], written: list[_SqlText]) -> _SqlText:
    match name, written:
        case _, [left, right] if name in _INFIX:
            return _infix(*_INFIX[name], left, right)
        case (("!" | "not"), [inner]):
            return _not(arguments[0], inner)
        case (("isnull" | "isnotnull"), [inner]):
            test = "IS NULL" if name == "isnull" else "IS NOT NULL"
            return _SqlText(f"{inner.within(_SUM)} {test}", _COMPARISON)
        case "negative", [inner]:
            return _SqlText(f"-{inner.within(_ATOM)}", _SIGN)
        case (("in" | "like"), _):
            return _predicate(name.upper(), written)
        case _:
            _refuse(f"PySpark's {name}")


def _infix(sign: str, precedence: int, left: _SqlText, right: _SqlText) -> _SqlText:
    # comparisons cannot be chained, and a - (b - c) needs its parentheses
    loose = precedence in (_OR, _AND)
    first = left.within(precedence if precedence != _COMPARISON else _SUM)
    second = right.within(precedence if loose else precedence + 1)
    return _SqlText(f"{first} {sign} {second}", precedence)


def _not(node: Any, inner: _SqlText) -> _SqlText:
    """Negations in their usual form, such as `a <> b` for NOT (a = b)."""
    if str(node.getClass().getSimpleName()) == "UnresolvedFunction":
        name = str(node.functionName()).lower()
        written = [_to_sql(argument) for argument in _items(node.arguments())]
        if name == "=":
            return _infix("<>", _COMPARISON, *written)
        if name == "<=>":
            return _infix("IS DISTINCT FROM", _COMPARISON, *written)
        if name == "isnull":
            return _SqlText(f"{written[0].within(_SUM)} IS NOT NULL", _COMPARISON)
        if name in ("in", "like"):
            return _predicate(f"NOT {name.upper()}", written)
    return _SqlText(f"NOT {inner.within(_COMPARISON)}", _NOT)


def _predicate(word: str, written: list[_SqlText]) -> _SqlText:
    value, *others = written
    if word.endswith("LIKE"):
        pattern = others[0].within(_SUM)
        if len(others) > 1:
            _refuse("LIKE with an escape character")
        return _SqlText(f"{value.within(_SUM)} {word} {pattern}", _COMPARISON)
    if not others:
        _refuse("isin() without values", "use lit(False) for a condition that is never true")
    values = ", ".join(w.within(_TEXT) for w in others)
    return _SqlText(f"{value.within(_SUM)} {word} ({values})", _COMPARISON)


def _items(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala collection."""
    found = sequence.iterator()
    while found.hasNext():
        yield found.next()


_CONVERTERS: dict[str, Callable[[Any], _SqlText]] = {
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
_NODE_NAMES = {
    "Window": "a window function",
    "SortOrder": "an order",
    "LambdaFunction": "a lambda",
    "UpdateFields": "withField",
    "ExpressionColumnNode": "a column of a Spark DataFrame or a Python function",
    "InvokeInlineUserDefinedFunction": "a user-defined function",
}
_NODE_HINTS = {
    "ExpressionColumnNode": 'name the column of the table: col("alias.column")',
    "InvokeInlineUserDefinedFunction": _UDF_HINT,
}
