"""Functions that the kernel computes, or Spark's of another name: as Spark SQL text.

The `rejoin_` names are those of spark_jobs/kernel/spark/functions/FlinkFunctions.scala.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from spark_jobs.plan.spark_sql.types import type_text
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.expr import Call

Render: TypeAlias = Callable[[Sequence[str], Call], str]

_DOUBLES = {
    "SIN": "sin",
    "COS": "cos",
    "TAN": "tan",
    "COT": "cot",
    "ASIN": "asin",
    "ACOS": "acos",
    "ATAN": "atan",
    "ATAN2": "atan2",
    "SINH": "sinh",
    "COSH": "cosh",
    "TANH": "tanh",
    "DEGREES": "toDegrees",
    "RADIANS": "toRadians",
    "LOG2": "log2",
}
_DIGESTS = {
    "SHA1": "SHA-1",
    "SHA224": "SHA-224",
    "SHA384": "SHA-384",
    "SHA512": "SHA-512",
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SECONDS = "'yyyy-MM-dd HH:mm:ss'"


def rounded_time(name: str, value: str, type_: DataType, unit: str) -> str:
    """FLOOR or CEIL of a date or timestamp, on the clock of its time zone."""
    found = f"rejoin_{name}Time(CAST({value} AS TIMESTAMP_NTZ), '{unit}')"
    return found if type_.name == "TIMESTAMP" else f"CAST({found} AS {type_text(type_)})"


def months_between(times: Sequence[str], unit: str) -> str:
    """TIMESTAMPDIFF of a unit of months."""
    start, end = (f"CAST({time} AS TIMESTAMP_NTZ)" for time in times)
    return f"CAST(rejoin_monthsBetween({start}, {end}) div {_MONTHS[unit]} AS INT)"


def _kernel(name: str, *defaults: str) -> Render:
    """A function of the kernel; `defaults` stand for arguments that may be left out."""

    def render(args: Sequence[str], call: Call) -> str:
        given = [_as_int(a, e.type) for a, e in zip(args, call.args, strict=True)]
        lacking = defaults[len(defaults) - (_WIDTHS.get(call.op, len(args)) - len(args)) :]
        return f"rejoin_{name}({', '.join([*given, *lacking])})"

    return render


# how many arguments those have that may lack some
_WIDTHS = {
    "BTRIM": 2,
    "STR_TO_MAP": 3,
    "PARSE_URL": 3,
    "UNIX_TIMESTAMP": 2,
    "REGEXP_EXTRACT_ALL": 3,
}


def _as_int(value: str, type_: DataType) -> str:
    return f"CAST({value} AS INT)" if type_.name in data_types.INTEGERS else value


def _of_long(name: str) -> Render:
    return lambda args, _: f"rejoin_{name}(CAST({args[0]} AS BIGINT))"


def _double(name: str) -> Render:
    return lambda args, _: f"rejoin_{name}({', '.join(f'CAST({a} AS DOUBLE)' for a in args)})"


def _log(args: Sequence[str], _: Call) -> str:
    base = args[0] if len(args) > 1 else "2.718281828459045D"
    return f"rejoin_log(CAST({base} AS DOUBLE), CAST({args[-1]} AS DOUBLE))"


def _digest(algorithm: str) -> Render:
    return lambda args, _: f"rejoin_digest({args[0]}, '{algorithm}')"


def _sha2(args: Sequence[str], _: Call) -> str:
    return f"rejoin_digest({args[0]}, concat('SHA-', {args[1]}))"


def _overlay(args: Sequence[str], _: Call) -> str:
    text, part, start, *length = args
    count = f"CAST({length[0]} AS INT)" if length else f"char_length({part})"
    return f"rejoin_overlay({text}, {part}, CAST({start} AS INT), {count})"


def _hex(args: Sequence[str], call: Call) -> str:
    if call.args[0].type.name == "STRING":
        return f"hex({args[0]})"
    return f"rejoin_hexOfNumber(CAST({args[0]} AS BIGINT))"


def _elt(args: Sequence[str], _: Call) -> str:
    return f"get(array({', '.join(args[1:])}), CAST({args[0]} AS INT) - 1)"


def _truncate(args: Sequence[str], call: Call) -> str:
    places = args[1] if len(args) > 1 else "0"
    type_ = call.args[0].type
    match type_.name:
        case "DOUBLE" | "FLOAT":
            return f"rejoin_truncate{type_.name.capitalize()}({args[0]}, {places})"
        case "DECIMAL":
            return _truncate_decimal(args[0], int(places.strip("()")), call.type)
        case _:
            found = f"rejoin_truncateLong(CAST({args[0]} AS BIGINT), {places})"
            return f"CAST({found} AS {type_text(type_)})"


def _truncate_decimal(value: str, places: int, type_: DataType) -> str:
    towards_zero = (
        f"(CASE WHEN {value} < 0 THEN ceil({value}, {places}) ELSE floor({value}, {places}) END)"
    )
    return f"CAST({towards_zero} AS {type_text(type_)})"


KERNEL_RENDERS: dict[str, Render] = {
    **{name: _double(of) for name, of in _DOUBLES.items()},
    **{name: _digest(algorithm) for name, algorithm in _DIGESTS.items()},
    "SHA2": _sha2,
    "LOG": _log,
    "TRUNCATE": _truncate,
    "BIN": _of_long("bin"),
    "HEX": _hex,
    "CHR": _of_long("chr"),
    "INET_NTOA": _of_long("inetNtoa"),
    "INET_ATON": _kernel("inetAton"),
    "ASCII": _kernel("ascii"),
    "INITCAP": _kernel("initcap"),
    "OVERLAY": _overlay,
    "BTRIM": _kernel("trimBoth", "' '"),
    "TRANSLATE": _kernel("translate"),
    "FROM_BASE64": _kernel("fromBase64"),
    "TO_BASE64": lambda args, _: f"base64(CAST({args[0]} AS BINARY))",
    "UNHEX": _kernel("unhex"),
    "URL_ENCODE": _kernel("urlEncode"),
    "URL_DECODE": _kernel("urlDecode"),
    "ENCODE": _kernel("encode"),
    "DECODE": _kernel("decode"),
    "ELT": _elt,
    "PRINTF": lambda args, _: f"format_string({', '.join(args)})",
    "SPLIT": _kernel("split"),
    "STR_TO_MAP": _kernel("strToMap", "','", "'='"),
    "PARSE_URL": _kernel("parseUrl", "''"),
    "IS_ALPHA": lambda args, _: f"coalesce(rejoin_isAlpha({args[0]}), false)",
    "IS_DIGIT": lambda args, _: f"coalesce(rejoin_isDigit({args[0]}), false)",
    "IS_DECIMAL": lambda args, _: f"coalesce(rejoin_isDecimal({args[0]}), false)",
    "REGEXP_COUNT": _kernel("regexpCount"),
    "REGEXP_INSTR": _kernel("regexpInstr"),
    "REGEXP_SUBSTR": _kernel("regexpSubstr"),
    "REGEXP_EXTRACT_ALL": _kernel("regexpExtractAll", "1"),
    "CONVERT_TZ": _kernel("convertTz"),
    "UNIX_TIMESTAMP": _kernel("unixTimestamp", _SECONDS),
}
