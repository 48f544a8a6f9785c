"""Plain Avro: which timestamps it has, by which mapping, and what is refused."""

import json

import pytest

from spark_jobs.errors import FormatError
from spark_jobs.formats.columns import with_columns
from spark_jobs.options.formats import FORMATS
from spark_jobs.sql.types.data_types import DataType, RowField


def timestamp(name: str, precision: int, legacy: str) -> object:
    declared = FORMATS["avro"].read({"avro.timestamp_mapping.legacy": legacy}, "")
    field = RowField("at", DataType(name, nullable=False, precision=precision))
    schema = json.loads(with_columns(declared, [field]).texts["schema"])
    return schema["fields"][0]["type"]["logicalType"]


def test_mappings() -> None:
    assert timestamp("TIMESTAMP", 3, "true") == "timestamp-millis"
    assert timestamp("TIMESTAMP", 3, "FALSE") == "local-timestamp-millis"
    assert timestamp("TIMESTAMP_LTZ", 0, "false") == "timestamp-millis"


@pytest.mark.parametrize(
    ("name", "precision", "legacy"),
    [("TIMESTAMP_LTZ", 3, "true"), ("TIMESTAMP", 6, "true"), ("TIMESTAMP", 6, "false")],
)
def test_refused(name: str, precision: int, legacy: str) -> None:
    with pytest.raises(FormatError, match=r"AVRO_TYPE.*'at'") as refused:
        timestamp(name, precision, legacy)
    assert refused.value.hint


def test_other_formats_stay_as_they_are() -> None:
    declared = FORMATS["json"].read({}, "")
    assert with_columns(declared, []) is declared
