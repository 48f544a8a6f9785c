"""JSON functions with Flink's meaning as Spark SQL text."""

import json
from collections.abc import Sequence

from spark_jobs.errors import UnsupportedError
from spark_jobs.plan.spark_sql.casts import cast_text
from spark_jobs.plan.spark_sql.kernel_functions import Render
from spark_jobs.plan.spark_sql.types import quoted, text
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.expr import Call, Expr, Literal

_RAW = ("JSON_OBJECT", "JSON_ARRAY", "JSON")
_EMPTY = {"EMPTY ARRAY": "'[]'", "EMPTY OBJECT": "'{}'"}
_CONDITIONS = {"TRUE": "true", "FALSE": "false", "UNKNOWN": "NULL"}


def json_text(value: str, type_: DataType, depth: int = 0) -> str:
    """The JSON of a value; NULL of NULL.

    Raises UnsupportedError for types that have no JSON of Flink's.
    """
    match type_:
        case DataType(name="STRING"):
            return f"rejoin_jsonString({value})"
        case DataType(name="BOOLEAN"):
            return f"CAST({value} AS STRING)"
        case DataType(name=name) if name in data_types.NUMERIC:
            return cast_text(value, type_, data_types.STRING)
        case DataType(name="NULL"):
            return "CAST(NULL AS STRING)"
        case DataType(name="ARRAY", element=DataType() as element):
            item = f"`item{depth}`"
            each = _or_null(json_text(item, element, depth + 1))
            return f"concat('[', array_join(transform({value}, {item} -> {each}), ','), ']')"
        case DataType(name="ROW", fields=fields):
            values = [json_text(f"{value}.{quoted(f.name)}", f.type, depth) for f in fields]
            named = zip(fields, values, strict=True)
            parts = [f"'{json.dumps(f.name)}:', {_or_null(v)}" for f, v in named]
            both = ", ',', ".join(parts)
            return f"if({value} IS NULL, NULL, concat('{{', {both}, '}}'))"
        case _:
            raise UnsupportedError(
                "UNSUPPORTED_EXPRESSION",
                f"JSON of {type_.sql()} is not supported",
                "CAST it to STRING",
            )


def _or_null(value: str) -> str:
    return f"coalesce({value}, 'null')"


def _at_path(function: str) -> Render:
    """What the kernel found, its letter in front, or what ON EMPTY and ON ERROR say."""

    def render(args: Sequence[str], call: Call) -> str:
        json_, path, wrapper, _, empty, _, error = args
        given = (json_, path, wrapper) if function == "jsonQuery" else (json_, path)
        found = f"rejoin_{function}({', '.join(given)})"
        value = cast_text(f"substring({found}, 2)", data_types.STRING, call.type)
        instead = [
            _instead(call.args[place], default, f"{call.op}: {what} at {_value(call.args[1])}")
            for place, default, what in ((3, empty, "nothing"), (5, error, "an error"))
        ]
        return (
            f"(CASE substring({found}, 1, 1) WHEN 'V' THEN {value}"
            f" WHEN 'E' THEN {instead[0]} WHEN 'X' THEN {instead[1]} END)"
        )

    return render


def _exists(args: Sequence[str], call: Call) -> str:
    found = f"rejoin_jsonExists({args[0]}, {args[1]})"
    word = str(_value(call.args[5]))
    failed = f"raise_error({text(f'JSON_EXISTS: an error at {_value(call.args[1])}')})"
    error = _CONDITIONS.get(word, failed)
    return f"(CASE {found} WHEN 'T' THEN true WHEN 'F' THEN false WHEN 'X' THEN {error} END)"


def _instead(word: Expr, default: str, problem: str) -> str:
    match _value(word):
        case "NULL":
            return "NULL"
        case "ERROR":
            return f"raise_error({text(problem)})"
        case "DEFAULT":
            return default
        case other:
            return _EMPTY[str(other)]


def _object(args: Sequence[str], call: Call) -> str:
    pairs = zip(call.args[1::2], args[2::2], call.args[2::2], strict=True)
    named = sorted((str(_value(key)), value, expr) for key, value, expr in pairs)
    parts = [
        f"concat({text(json.dumps(k, ensure_ascii=False) + ':')}, {_item(v, e, call)})"
        for k, v, e in named
    ]
    return _joined("{", parts, "}")


def _array(args: Sequence[str], call: Call) -> str:
    parts = [_item(v, e, call) for v, e in zip(args[1:], call.args[1:], strict=True)]
    return _joined("[", parts, "]")


def _joined(left: str, parts: Sequence[str], right: str) -> str:
    return f"concat('{left}', concat_ws({', '.join((text(','), *parts))}), '{right}')"


def _item(value: str, expr: Expr, call: Call) -> str:
    is_raw = isinstance(expr, Call) and expr.op in _RAW
    found = value if is_raw else json_text(value, expr.type)
    return _or_null(found) if _value(call.args[0]) == "NULL" else found


def _value(expr: Expr) -> object:
    return expr.value if isinstance(expr, Literal) else None


JSON_RENDERS: dict[str, Render] = {
    "JSON_VALUE": _at_path("jsonValue"),
    "JSON_QUERY": _at_path("jsonQuery"),
    "JSON_EXISTS": _exists,
    "JSON_OBJECT": _object,
    "JSON_ARRAY": _array,
    "JSON_STRING": lambda args, call: json_text(args[0], call.args[0].type),
    "JSON_QUOTE": lambda args, _: f"rejoin_jsonQuote({args[0]})",
    "JSON_UNQUOTE": lambda args, _: f"rejoin_jsonUnquote({args[0]})",
    "JSON": lambda args, _: f"rejoin_jsonFormat({args[0]})",
}
