"""Casts with Flink's meaning as Spark SQL text; each difference stands in docs/functions.md."""

from spark_jobs.plan.spark_sql.types import type_text
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import DataType

# a text that is none fails the query as in Flink, Spark would give NULL
_CHECKED = frozenset(("BOOLEAN", *data_types.NUMERIC, "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIME"))
_SECOND_DIGITS = 19  # yyyy-MM-dd HH:mm:ss


def cast_text(value: str, source: DataType, target: DataType, try_: bool = False) -> str:
    """CAST, or TRY_CAST which gives NULL instead of an error."""
    plain = _plain(value, source, target)
    if try_ or source.name != "STRING" or target.name not in _CHECKED:
        return plain
    problem = f"concat('cannot cast to {target.sql()}: ', {value})"
    return (
        f"(CASE WHEN {value} IS NOT NULL AND {plain} IS NULL THEN raise_error({problem})"
        f" ELSE {plain} END)"
    )


def _plain(value: str, source: DataType, target: DataType) -> str:
    if source.name == target.name and source.name not in data_types.DATETIMES:
        return f"CAST({value} AS {type_text(target)})"
    match target.name:
        case "STRING":
            return _to_text(value, source)
        case "TIME":
            return _to_time(value, source, target.precision or 0)
        case "TIMESTAMP":
            return _truncated(f"CAST({value} AS TIMESTAMP_NTZ)", source, target)
        case "TIMESTAMP_LTZ":
            return _truncated_ltz(value, source, target)
        case _:
            return f"CAST({value} AS {type_text(target)})"


def _to_text(value: str, source: DataType) -> str:
    as_string = f"CAST({value} AS STRING)"
    match source.name:
        case "BOOLEAN":
            return f"upper({as_string})"
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _timestamp_text(as_string, source.precision or 0)
        case "TIME":
            return time_text(value, source.precision or 0)
        case "DECIMAL" if (source.scale or 0) > 6:
            # Spark writes 1E-7, Flink 0.0000001
            return f"translate(format_number({value}, {source.scale}), ',', '')"
        case _:
            return as_string


def _timestamp_text(as_string: str, precision: int) -> str:
    """Flink writes all digits of the type, Spark leaves zeros at the end out."""
    if precision == 0:
        return f"substring({as_string}, 1, {_SECOND_DIGITS})"
    point = f"if(instr({as_string}, '.') = 0, concat({as_string}, '.'), {as_string})"
    return f"rpad({point}, {_SECOND_DIGITS + 1 + precision}, '0')"


def time_text(value: str, precision: int) -> str:
    """HH:mm:ss[.SSS] of a millisecond of the day."""
    parts = [
        f"lpad(CAST({value} div 3600000 AS STRING), 2, '0')",
        f"lpad(CAST({value} div 60000 % 60 AS STRING), 2, '0')",
        f"lpad(CAST({value} div 1000 % 60 AS STRING), 2, '0')",
    ]
    clock = ", ':', ".join(parts)
    if precision == 0:
        return f"concat({clock})"
    fraction = f"substring(lpad(CAST({value} % 1000 AS STRING), 3, '0'), 1, {precision})"
    return f"concat({clock}, '.', {fraction})"


def _to_time(value: str, source: DataType, precision: int) -> str:
    if source.name == "TIME":
        return _coarser(value, precision) if precision < (source.precision or 0) else value
    if source.name == "STRING":
        stamp = f"CAST(concat('1970-01-01 ', trim({value})) AS TIMESTAMP_NTZ)"
    else:
        stamp = value
    milliseconds = f"CAST(floor(extract(SECOND FROM {stamp}) * 1000) AS INT)"
    found = f"(hour({stamp}) * 3600000 + minute({stamp}) * 60000 + {milliseconds})"
    return _coarser(found, precision)


def _coarser(value: str, precision: int) -> str:
    unit = 10 ** (3 - precision)
    return value if unit == 1 else f"CAST({value} div {unit} * {unit} AS INT)"


def _truncated(stamp: str, source: DataType, target: DataType) -> str:
    """A TIMESTAMP without the digits that its type has not."""
    precision = target.precision or 0
    if source.name in data_types.TIMESTAMPS and (source.precision or 0) <= precision:
        return stamp
    if source.name == "DATE" or precision >= 6:
        return stamp
    kept = _SECOND_DIGITS + (1 + precision if precision else 0)
    return f"CAST(substring(CAST({stamp} AS STRING), 1, {kept}) AS TIMESTAMP_NTZ)"


def _truncated_ltz(value: str, source: DataType, target: DataType) -> str:
    stamp = f"CAST({value} AS TIMESTAMP)"
    precision = target.precision or 0
    fine = source.name == "STRING" or (source.precision or 0) > precision
    if not fine or precision >= 6:
        return stamp
    unit = 10 ** (6 - precision)
    return f"timestamp_micros(unix_micros({stamp}) - pmod(unix_micros({stamp}), {unit}L))"
