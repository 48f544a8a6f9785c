"""KEY of `rejoin state get`: what a person types, as values of the key's types, or refused."""

import pytest

from spark_jobs.state.keys import KeyColumn, key_columns, parse_key

LONGEST = "12345678901234567890123456789012345678"
ID = KeyColumn("id", "integer")
NAME = KeyColumn("name", "string")


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("integer", "-7", -7),
        ("long", '"42"', 42),
        ("string", "42", "42"),
        ("string", "1e3", "1e3"),
        ("string", "null and void", "null and void"),
        ("string", "null", None),
        ("string", '"null"', "null"),
        ("string", '["null"]', "null"),
        ("string", "true", "true"),
        ("boolean", "TRUE", True),
        ("boolean", "false", False),
        ("double", "1.5", 1.5),
        ("decimal(6,2)", "1.5", "1.50"),
        ("decimal(38,0)", LONGEST, LONGEST),
        ("date", "2024-02-29", "2024-02-29"),
        ("timestamp_ntz", "2024-02-29 12:00", "2024-02-29T12:00:00.000000"),
        ("timestamp", "2024-02-29T12:00:00+02:00", "2024-02-29T10:00:00.000000"),
        ("binary", "AAE=", "AAE="),
    ],
)  # fmt: skip
def test_a_single_column(type_: str, text: str, value: object) -> None:
    assert parse_key(text, [KeyColumn("k", type_)]) == [value]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("integer", "2147483648"),
        ("byte", "128"),
        ("integer", "1.5"),
        ("integer", '"1_0"'),
        ("double", "NaN"),
        ("double", "1e999"),
        ("integer", "true"),
        ("integer", ""),
        ("boolean", "yes"),
        ("decimal(6,2)", "1.555"),
        ("decimal(3,2)", "12.5"),
        ("decimal(3,2)", "NaN"),
        ("date", "2024-02-30"),
        ("timestamp_ntz", "2024-02-29T12:00:00Z"),
        ("binary", "#"),
        ("string", '{"other": 1}'),
        ("string", "[1, 2]"),
        ("string", "[[1]]"),
    ],
)
def test_what_is_no_value_of_the_column(type_: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"is no [A-Z]|it has "):
        parse_key(text, [KeyColumn("k", type_)])


def test_several_columns_by_place_or_by_name() -> None:
    assert parse_key('[1, "a"]', [ID, NAME]) == [1, "a"]
    assert parse_key('{"name": "a", "id": 1}', [ID, NAME]) == [1, "a"]
    assert parse_key("[]", []) == []
    with pytest.raises(ValueError, match="it has 1 of 2 values"):
        parse_key("1", [ID, NAME])
    with pytest.raises(ValueError, match="it has the columns id"):
        parse_key('{"id": 1}', [ID, NAME])


def test_a_time_of_day_is_its_millisecond() -> None:
    field = {"name": "t", "type": "integer", "metadata": {"sqlType": "TIME(3)"}}
    columns = key_columns({"fields": [field]})
    assert str(columns[0]) == "t TIME"
    assert parse_key("01:02:03.004", columns) == [3_723_004]
    with pytest.raises(ValueError, match="is no TIME"):
        parse_key("24:00", columns)


@pytest.mark.parametrize("declared", ["TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"])
def test_a_timestamp_is_no_time_of_day(declared: str) -> None:
    field = {"name": "t", "type": "timestamp_ntz", "metadata": {"sqlType": declared}}
    columns = key_columns({"fields": [field]})
    assert parse_key("2024-02-29 12:00", columns) == ["2024-02-29T12:00:00.000000"]
