"""The SQL types of Flink, their text, and the names Spark gives them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

SparkJson: TypeAlias = "str | dict[str, str | bool | SparkJson | list[SparkJson]]"


@dataclass(frozen=True, slots=True)
class RowField:
    """One field of a ROW type."""

    name: str
    type: "DataType"


@dataclass(frozen=True, slots=True)
class DataType:
    """A Flink SQL type; `precision` and `scale` only where the type has them.

    `name` is one of STRING BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL DATE TIME
    TIMESTAMP TIMESTAMP_LTZ BYTES ROW ARRAY MAP INTERVAL_DAY INTERVAL_YEAR NULL.
    """

    name: str
    nullable: bool = True
    precision: int | None = None
    scale: int | None = None
    fields: tuple[RowField, ...] = ()
    element: "DataType | None" = None
    key: "DataType | None" = None

    def sql(self) -> str:
        """Flink's text of the type.

        >>> DataType("DECIMAL", nullable=False, precision=10, scale=4).sql()
        'DECIMAL(10, 4) NOT NULL'
        """
        return self._bare_sql() + ("" if self.nullable else " NOT NULL")

    def spark_json(self) -> SparkJson:
        """Spark's JSON form of the type.

        TIME has no Spark type: it is an integer, the millisecond of the day.
        """
        match self:
            case DataType(name="DECIMAL"):
                return f"decimal({self.precision},{self.scale})"
            case DataType(name="ROW"):
                return spark_struct((f.name, f.type) for f in self.fields)
            case DataType(name="ARRAY", element=DataType() as element):
                return {
                    "type": "array",
                    "elementType": element.spark_json(),
                    "containsNull": element.nullable,
                }
            case DataType(name="MAP", key=DataType() as key, element=DataType() as element):
                return {
                    "type": "map",
                    "keyType": key.spark_json(),
                    "valueType": element.spark_json(),
                    "valueContainsNull": element.nullable,
                }
            case _:
                return SPARK_NAMES[self.name]

    def _bare_sql(self) -> str:
        match self:
            case DataType(name="ROW"):
                return f"ROW<{', '.join(f'{_quoted(f.name)} {f.type.sql()}' for f in self.fields)}>"
            case DataType(name="ARRAY", element=DataType() as element):
                return f"ARRAY<{element.sql()}>"
            case DataType(name="MAP", key=DataType() as key, element=DataType() as element):
                return f"MAP<{key.sql()}, {element.sql()}>"
            case DataType(name="DECIMAL"):
                return f"DECIMAL({self.precision}, {self.scale})"
            case DataType(name="INTERVAL_DAY"):
                return "INTERVAL DAY TO SECOND"
            case DataType(name="INTERVAL_YEAR"):
                return "INTERVAL YEAR TO MONTH"
            case DataType(precision=int() as precision):
                return f"{self.name}({precision})"
            case _:
                return self.name


SPARK_NAMES = {
    "STRING": "string",
    "BOOLEAN": "boolean",
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIME": "integer",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP_LTZ": "timestamp",
    "BYTES": "binary",
    "INTERVAL_DAY": "interval day to second",
    "INTERVAL_YEAR": "interval year to month",
    "NULL": "void",
}


def spark_struct(fields: Iterable[tuple[str, DataType]]) -> SparkJson:
    """Spark's JSON schema of a row of named columns."""
    return {
        "type": "struct",
        "fields": [
            {"name": n, "type": t.spark_json(), "nullable": t.nullable, "metadata": _metadata(t)}
            for n, t in fields
        ],
    }


def _metadata(type_: DataType) -> SparkJson:
    """Spark has no TIME: the integer's metadata keep the SQL type."""
    return {"sqlType": type_.sql()} if type_.name == "TIME" else {}


STRING = DataType("STRING")
BOOLEAN = DataType("BOOLEAN")
TINYINT = DataType("TINYINT")
SMALLINT = DataType("SMALLINT")
INT = DataType("INT")
BIGINT = DataType("BIGINT")
FLOAT = DataType("FLOAT")
DOUBLE = DataType("DOUBLE")
DATE = DataType("DATE")
BYTES = DataType("BYTES")
NULL = DataType("NULL")
INTERVAL_DAY = DataType("INTERVAL_DAY")
INTERVAL_YEAR = DataType("INTERVAL_YEAR")

INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
APPROXIMATE = ("FLOAT", "DOUBLE")
NUMERIC = (*INTEGERS, "DECIMAL", *APPROXIMATE)
TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_LTZ")
DATETIMES = ("DATE", "TIME", *TIMESTAMPS)
INTERVALS = ("INTERVAL_DAY", "INTERVAL_YEAR")
MAX_DECIMAL = 38
# the digits that a value of an integer type may have, Calcite's precisions
INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}


def decimal(precision: int, scale: int) -> DataType:
    return DataType("DECIMAL", precision=precision, scale=scale)


def timestamp(precision: int = 6) -> DataType:
    return DataType("TIMESTAMP", precision=precision)


def timestamp_ltz(precision: int = 6) -> DataType:
    return DataType("TIMESTAMP_LTZ", precision=precision)


def time(precision: int = 0) -> DataType:
    return DataType("TIME", precision=precision)


def with_nullable(type_: DataType, nullable: bool) -> DataType:
    return type_ if type_.nullable == nullable else replace(type_, nullable=nullable)


def same_type(left: DataType, right: DataType) -> bool:
    """Equal but for the outermost nullability."""
    return with_nullable(left, True) == with_nullable(right, True)


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"
