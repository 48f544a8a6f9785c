"""Functions with Flink's meaning as Spark SQL text; each difference stands in docs/functions.md."""

from collections.abc import Sequence

from spark_jobs.plan.spark_sql.collections import COLLECTION_RENDERS
from spark_jobs.plan.spark_sql.json_functions import JSON_RENDERS
from spark_jobs.plan.spark_sql.kernel_functions import (
    KERNEL_RENDERS,
    Render,
    months_between,
    rounded_time,
)
from spark_jobs.plan.spark_sql.types import type_text
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.expr import Call, Expr, Literal

_MS_OF = {
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
    "WEEK": 604_800_000,
}
_EXTRACT = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "weekofyear",
    "DAY": "day",
    "DOY": "dayofyear",
    "DOW": "dayofweek",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
}
# the part of 'yyyy-MM-dd HH:mm:ss' that FLOOR(x TO unit) keeps, and what follows it
_KEPT = {
    "YEAR": (4, "-01-01 00:00:00"),
    "MONTH": (7, "-01 00:00:00"),
    "DAY": (10, " 00:00:00"),
    "HOUR": (13, ":00:00"),
    "MINUTE": (16, ":00"),
    "SECOND": (19, ""),
}
_EXACT_DOUBLE = 9_007_199_254_740_992


def function_text(args: Sequence[str], call: Call) -> str:
    """The call of a function in functions.SIGNATURES."""
    render = RENDERS.get(call.op)
    if render is None:
        return f"{call.op.lower()}({', '.join(args)})"
    return render(args, call)


def _named(name: str) -> Render:
    return lambda args, _: f"{name}({', '.join(args)})"


def _substr(args: Sequence[str], call: Call) -> str:
    """A start before the text and a negative length: '' and NULL, where Spark counts on."""
    found = f"substring({', '.join(args)})"
    if len(args) == 3 and not _at_least(call.args[2], 0):
        found = f"if({args[2]} < 0, NULL, {found})"
    if not _at_least(call.args[1], 0):
        found = f"if({args[1]} < -char_length({args[0]}), '', {found})"
    return found


def _at_least(expr: Expr, least: int) -> bool:
    return isinstance(expr, Literal) and isinstance(expr.value, int) and expr.value >= least


def _trim(args: Sequence[str], call: Call) -> str:
    return f"trim({_unit(call)} {args[1]} FROM {args[2]})"


def _one_sided(side: str) -> Render:
    def render(args: Sequence[str], _: Call) -> str:
        what = args[1] if len(args) > 1 else "' '"
        return f"trim({side} {what} FROM {args[0]})"

    return render


def _pad(name: str) -> Render:
    def render(args: Sequence[str], _: Call) -> str:
        text, length, pad = args
        return f"if({length} < 0 OR {pad} = '', NULL, {name}({text}, {length}, {pad}))"

    return render


def _split_index(args: Sequence[str], call: Call) -> str:
    value, separator, index = args
    pattern = f"concat('\\\\Q', {separator}, '\\\\E')"
    found = f"get(split({value}, {pattern}, -1), CAST({index} AS INT))"
    return found if _value(call.args[1]) else f"if({separator} = '', NULL, {found})"


def _replace(args: Sequence[str], call: Call) -> str:
    name = "replace" if _value(call.args[1]) else "rejoin_replace"
    return f"{name}({', '.join(args)})"


def _regexp_extract(args: Sequence[str], _: Call) -> str:
    value, pattern, *group = args
    index = group[0] if group else "0"
    return f"if({value} RLIKE {pattern}, regexp_extract({value}, {pattern}, {index}), NULL)"


def _round(args: Sequence[str], call: Call) -> str:
    places = str(_value(call.args[1])) if len(args) > 1 else "0"
    return f"CAST(round({args[0]}, {places}) AS {type_text(call.type)})"


def _floor(name: str) -> Render:
    def render(args: Sequence[str], call: Call) -> str:
        type_ = call.type
        if type_.name in (*data_types.TIMESTAMPS, "DATE"):
            unit = str(_value(call.args[1]))
            if name == "floor" and unit in _KEPT and type_.name != "DATE":
                return _floor_time(args[0], type_, unit)
            return rounded_time(name, args[0], type_, unit)
        if type_.name in data_types.INTEGERS:
            return args[0]
        if type_.name == "DECIMAL":
            return f"CAST({name}({args[0]}) AS {type_text(type_)})"
        # Spark's result is a BIGINT; a double beyond this has no fraction to lose
        whole = f"CAST({name}({args[0]}) AS {type_text(type_)})"
        return f"if(abs({args[0]}) < {_EXACT_DOUBLE}D, {whole}, {args[0]})"

    return render


def _floor_time(value: str, type_: DataType, unit: str) -> str:
    if type_.name == "TIMESTAMP_LTZ":
        return f"date_trunc('{unit}', {value})"
    kept, rest = _KEPT[unit]
    written = f"concat(substring(CAST({value} AS STRING), 1, {kept}), '{rest}')"
    return f"CAST({written} AS TIMESTAMP_NTZ)"


def _logarithm(name: str) -> Render:
    """Java's: infinite at zero and not a number below, where Spark has NULL."""

    def render(args: Sequence[str], _: Call) -> str:
        x = f"CAST({args[0]} AS DOUBLE)"
        return (
            f"(CASE WHEN {x} > 0 THEN {name}({x}) WHEN {x} = 0 THEN CAST('-Infinity' AS DOUBLE)"
            f" WHEN {x} < 0 THEN CAST('NaN' AS DOUBLE) END)"
        )

    return render


def _double(name: str) -> Render:
    return lambda args, _: f"{name}({', '.join(f'CAST({a} AS DOUBLE)' for a in args)})"


def _sign(args: Sequence[str], call: Call) -> str:
    return f"CAST(sign({args[0]}) AS {type_text(call.type)})"


def _extreme(name: str) -> Render:
    """NULL if any argument is; Spark leaves NULLs out."""

    def render(args: Sequence[str], call: Call) -> str:
        if len(args) == 1:
            return args[0]
        nullable = [a for a, e in zip(args, call.args, strict=True) if e.type.nullable]
        found = f"{name}({', '.join(args)})"
        tests = " OR ".join(f"{a} IS NULL" for a in nullable)
        return f"if({tests}, NULL, {found})" if tests else found

    return render


def _to_timestamp_ltz(args: Sequence[str], call: Call) -> str:
    digits = _value(call.args[1]) if len(call.args) > 1 else 3
    name = "timestamp_seconds" if digits == 0 else "timestamp_millis"
    return f"{name}({args[0]})"


def _to_timestamp(args: Sequence[str], _: Call) -> str:
    if len(args) == 1:
        return f"CAST(substring({args[0]}, 1, 23) AS TIMESTAMP_NTZ)"
    return f"to_timestamp_ntz({args[0]}, {args[1]})"


def _to_date(args: Sequence[str], _: Call) -> str:
    return f"CAST({args[0]} AS DATE)" if len(args) == 1 else f"to_date({args[0]}, {args[1]})"


def _from_unixtime(args: Sequence[str], _: Call) -> str:
    pattern = args[1] if len(args) > 1 else "'yyyy-MM-dd HH:mm:ss'"
    return f"from_unixtime({args[0]}, {pattern})"


def _extract(args: Sequence[str], call: Call) -> str:
    unit, value, type_ = _unit(call), args[1], call.args[1].type
    if type_.name == "TIME":
        return _extract_time(unit, value)
    if unit == "MILLISECOND":
        return f"CAST(floor(extract(SECOND FROM {value}) * 1000) % 1000 AS BIGINT)"
    if unit == "EPOCH":
        return f"CAST(floor({_micros_since_epoch(value, type_)} / 1000000) AS BIGINT)"
    return f"CAST({_EXTRACT[unit]}({value}) AS BIGINT)"


def _micros_since_epoch(value: str, type_: DataType) -> str:
    if type_.name == "TIMESTAMP_LTZ":
        return f"unix_micros({value})"
    since = f"(CAST({value} AS TIMESTAMP_NTZ) - TIMESTAMP_NTZ '1970-01-01 00:00:00')"
    return f"(CAST(CAST({since} AS INTERVAL SECOND) AS DECIMAL(18, 6)) * 1000000)"


def _extract_time(unit: str, value: str) -> str:
    parts = {
        "HOUR": f"{value} div 3600000",
        "MINUTE": f"{value} div 60000 % 60",
        "SECOND": f"{value} div 1000 % 60",
        "MILLISECOND": f"{value} % 1000",
    }
    return f"CAST({parts.get(unit, '0')} AS BIGINT)"


def _timestampadd(args: Sequence[str], call: Call) -> str:
    unit, count, value = _unit(call), args[1], args[2]
    if call.args[2].type.name == "DATE":
        return f"CAST(CAST({value} AS TIMESTAMP_NTZ) + {_interval(unit, count)} AS DATE)"
    return f"({value} + {_interval(unit, count)})"


def _interval(unit: str, count: str) -> str:
    count = f"CAST({count} AS INT)"
    match unit:
        case "YEAR":
            return f"make_ym_interval({count}, 0)"
        case "MONTH":
            return f"make_ym_interval(0, {count})"
        case "WEEK":
            return f"make_dt_interval({count} * 7)"
        case "DAY":
            return f"make_dt_interval({count})"
        case "HOUR":
            return f"make_dt_interval(0, {count})"
        case "MINUTE":
            return f"make_dt_interval(0, 0, {count})"
        case _:
            return f"make_dt_interval(0, 0, 0, {count})"


def _timestampdiff(args: Sequence[str], call: Call) -> str:
    unit = _MS_OF.get(_unit(call))
    if unit is None:
        return months_between(args[1:], _unit(call))
    start, end = (_millis(a, e.type) for a, e in zip(args[1:], call.args[1:], strict=True))
    return f"CAST(({end} - {start}) div {unit}L AS INT)"


def _millis(value: str, type_: DataType) -> str:
    return f"CAST(floor({_micros_since_epoch(value, type_)} / 1000) AS BIGINT)"


def _cardinality(args: Sequence[str], _: Call) -> str:
    return f"if({args[0]} IS NULL, NULL, size({args[0]}))"


def _unit(call: Call) -> str:
    return str(_value(call.args[0]))


def _value(expr: Expr) -> object:
    return expr.value if isinstance(expr, Literal) else None


RENDERS: dict[str, Render] = {
    **KERNEL_RENDERS,
    **COLLECTION_RENDERS,
    **JSON_RENDERS,
    "SUBSTR": _substr,
    "TRIM": _trim,
    "LTRIM": _one_sided("LEADING"),
    "RTRIM": _one_sided("TRAILING"),
    "LPAD": _pad("lpad"),
    "RPAD": _pad("rpad"),
    "POSITION": _named("locate"),
    "SPLIT_INDEX": _split_index,
    "REPLACE": _replace,
    "REGEXP": lambda args, _: f"({args[0]} RLIKE {args[1]})",
    "REGEXP_EXTRACT": _regexp_extract,
    "SHA256": lambda args, _: f"sha2({args[0]}, 256)",
    "ROUND": _round,
    "FLOOR": _floor("floor"),
    "CEIL": _floor("ceil"),
    "POWER": _double("power"),
    "SQRT": _double("sqrt"),
    "EXP": _double("exp"),
    "LN": _logarithm("ln"),
    "LOG10": _logarithm("log10"),
    "SIGN": _sign,
    "GREATEST": _extreme("greatest"),
    "LEAST": _extreme("least"),
    "TO_TIMESTAMP_LTZ": _to_timestamp_ltz,
    "TO_TIMESTAMP": _to_timestamp,
    "TO_DATE": _to_date,
    "FROM_UNIXTIME": _from_unixtime,
    "EXTRACT": _extract,
    "TIMESTAMPADD": _timestampadd,
    "TIMESTAMPDIFF": _timestampdiff,
    "CARDINALITY": _cardinality,
}
