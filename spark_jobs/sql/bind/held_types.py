"""The column types that the records of a format cannot hold."""

from spark_jobs.errors import CatalogError
from spark_jobs.sql.catalog import TableColumn
from spark_jobs.sql.types.data_types import DataType

_RAW = frozenset(
    ("STRING", "BYTES", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
)
_CSV = _RAW | {"DECIMAL", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"}
# the type of a column that is wrong already
_UNKNOWN = "NULL"


def unheld(format_name: str, which: str, column: TableColumn) -> CatalogError | None:
    """Why the column cannot stand in the records of `which` format; None if it can."""
    problem = f"{which} cannot hold {column.name} {column.type.sql()}"
    if format_name == "raw" and column.type.name not in (*_RAW, _UNKNOWN):
        hint = "declare it as STRING, BYTES, BOOLEAN or an integer or float type, and CAST it"
        return CatalogError("RAW_TYPE", problem, hint)
    if format_name == "csv" and not _is_csv(column.type):
        hint = "a field holds one value, or an ARRAY or ROW of such; write other types as STRING"
        return CatalogError("CSV_TYPE", problem, hint)
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
