"""The column types that the records of a format cannot hold."""

from dataclasses import dataclass

from spark_jobs.sql.types.data_types import DataType

_RAW = frozenset(
    ("STRING", "BYTES", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
)
_CSV = _RAW | {"DECIMAL", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"}
# the type of a column that is wrong already
_UNKNOWN = "NULL"


@dataclass(frozen=True, slots=True)
class Unheld:
    """Why a format cannot hold a type: the code of the error, and what to do."""

    code: str
    hint: str


def unheld(format_name: str, type_: DataType) -> Unheld | None:
    """Why columns of this type cannot stand in the format's records; None if they can."""
    if format_name == "raw" and type_.name not in (*_RAW, _UNKNOWN):
        hint = "declare it as STRING, BYTES, BOOLEAN or an integer or float type, and CAST it"
        return Unheld("RAW_TYPE", hint)
    if format_name == "csv" and not _is_csv(type_):
        hint = "a field holds one value, or an ARRAY or ROW of such; write other types as STRING"
        return Unheld("CSV_TYPE", hint)
    return None


def _is_csv(type_: DataType) -> bool:
    """Nothing is nested twice; the elements of an ARRAY have no declared precision of a TIME."""
    match type_:
        case DataType(name="ARRAY", element=DataType() as element):
            return element.name in _CSV - {"TIME"}
        case DataType(name="ROW", fields=fields):
            return all(field.type.name in _CSV for field in fields)
        case _:
            return type_.name in (*_CSV, _UNKNOWN)
