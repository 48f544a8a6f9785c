"""Types: their texts, Spark's names for them, and what they become together."""

import pytest

from spark_jobs.sql.types.coercion import arithmetic_type, assignable, can_cast, common_type
from spark_jobs.sql.types.type_text import (
    Length,
    TypeTextError,
    UnsupportedTypeError,
    parse_type,
    parse_type_at,
)


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("STRING", "string"),
        ("BOOLEAN NOT NULL", "boolean"),
        ("TINYINT", "byte"),
        ("SMALLINT", "short"),
        ("INT", "integer"),
        ("BIGINT", "long"),
        ("FLOAT", "float"),
        ("DOUBLE", "double"),
        ("DECIMAL(10, 4)", "decimal(10,4)"),
        ("DATE", "date"),
        ("TIME(3)", "integer"),
        ("TIMESTAMP(3)", "timestamp_ntz"),
        ("TIMESTAMP_LTZ(6)", "timestamp"),
        ("BYTES", "binary"),
        (
            "ARRAY<INT NOT NULL>",
            {"type": "array", "elementType": "integer", "containsNull": False},
        ),
        (
            "MAP<STRING, BIGINT>",
            {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
        ),
        (
            "ROW<id BIGINT NOT NULL, `a b` STRING>",
            {
                "type": "struct",
                "fields": [
                    {"name": "id", "type": "long", "nullable": False, "metadata": {}},
                    {"name": "a b", "type": "string", "nullable": True, "metadata": {}},
                ],
            },
        ),
    ],
)
def test_text_and_spark_name(text: str, spark: object) -> None:
    assert parse_type(text).sql() == text
    assert parse_type(text).spark_json() == spark


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("integer", "INT"),
        ("numeric(5)", "DECIMAL(5, 0)"),
        ("DEC", "DECIMAL(10, 0)"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIME", "TIME(0)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL", "TIMESTAMP_LTZ(3) NOT NULL"),
        ("VARCHAR(2147483647)", "STRING"),
        ("VARCHAR", "STRING"),
        ("CHAR(3) NOT NULL", "STRING NOT NULL"),
        ("ROW<a BINARY(3)>", "ROW<a BYTES>"),
        ("VARBINARY(2147483647)", "BYTES"),
        ("INT ARRAY", "ARRAY<INT>"),
        ("ROW(a INT 'what a is', b ROW<c STRING>)", "ROW<a INT, b ROW<c STRING>>"),
        ("map<string,/* any */array<int>> -- end", "MAP<STRING, ARRAY<INT>>"),
    ],
)
def test_other_spellings(text: str, same: str) -> None:
    assert parse_type(text).sql() == same


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("VARCHAR", None),
        ("VARCHAR(2147483647)", None),
        ("VARCHAR(20)", Length(20, fixed=False)),
        ("CHARACTER VARYING(20) NOT NULL", Length(20, fixed=False)),
        ("CHAR", Length(1, fixed=True)),
        ("BINARY(4)", Length(4, fixed=True)),
        ("VARBINARY", None),
        ("ARRAY<CHAR(3)>", None),
    ],
)
def test_lengths(text: str, length: Length | None) -> None:
    written, _ = parse_type_at(text, 0)
    assert (written.length, written.has_inner) == (length, text.startswith("ARRAY"))


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("TIMESTAMP(9)", 0),
        ("TIMESTAMP_LTZ(7)", 0),
        ("TIME(6)", 0),
        ("TIMESTAMP(3) WITH TIME ZONE", 0),
        ("MULTISET<INT>", 0),
        ("ROW<a RAW>", 6),
    ],
)
def test_refused_by_name(text: str, offset: int) -> None:
    with pytest.raises(UnsupportedTypeError) as caught:
        parse_type(text)
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("INTT", 0),
        ("INT 3", 3),
        ("ROW<a>", 5),
        ("ROW<a INT", 9),
        ("ARRAY", 0),
        ("DECIMAL(39)", 0),
        ("DECIMAL(5, 6)", 0),
        ("DECIMAL(a)", 8),
        ("CHAR(0)", 0),
        ("VARCHAR(2147483648)", 0),
        ("INT NOT", 7),
    ],
)
def test_syntax_errors_have_a_place(text: str, offset: int) -> None:
    with pytest.raises(TypeTextError) as caught:
        parse_type(text)
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ("INT", "BIGINT NOT NULL", "BIGINT"),
        ("TINYINT NOT NULL", "SMALLINT NOT NULL", "SMALLINT NOT NULL"),
        ("INT", "DECIMAL(10, 4)", "DECIMAL(14, 4)"),
        ("DECIMAL(38, 2)", "DECIMAL(38, 10)", "DECIMAL(38, 6)"),
        ("BIGINT", "FLOAT", "FLOAT"),
        ("DECIMAL(10, 4)", "FLOAT", "DOUBLE"),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6)"),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", None),
        ("DATE", "TIMESTAMP(3)", None),
        ("STRING", "INT", None),
        ("ROW<a INT>", "ROW<b BIGINT>", "ROW<a BIGINT>"),
        ("ROW<a INT>", "ROW<a INT, b INT>", None),
        ("ARRAY<INT>", "ARRAY<STRING>", None),
        ("MAP<STRING, INT>", "MAP<STRING, BIGINT>", "MAP<STRING, BIGINT>"),
    ],
)
def test_common_type(left: str, right: str, common: str | None) -> None:
    found = common_type(parse_type(left), parse_type(right))
    assert (found and found.sql()) == common


@pytest.mark.parametrize(
    ("left", "op", "right", "result"),
    [
        ("INT", "/", "INT", "INT"),
        ("BIGINT", "%", "INT", "INT"),
        ("DECIMAL(10, 4)", "+", "DECIMAL(5, 1)", "DECIMAL(11, 4)"),
        ("DECIMAL(10, 4)", "*", "DECIMAL(5, 1)", "DECIMAL(16, 5)"),
        ("DECIMAL(10, 4)", "/", "DECIMAL(5, 1)", "DECIMAL(17, 10)"),
        ("DECIMAL(38, 10)", "*", "DECIMAL(38, 10)", "DECIMAL(38, 6)"),
        ("DECIMAL(10, 4)", "%", "DECIMAL(5, 1)", "DECIMAL(8, 4)"),
        ("INT", "+", "DOUBLE", "DOUBLE"),
        ("STRING", "+", "INT", None),
        ("TIMESTAMP(3)", "-", "TIMESTAMP(3)", None),
    ],
)
def test_arithmetic_type(left: str, op: str, right: str, result: str | None) -> None:
    found = arithmetic_type(op, parse_type(left), parse_type(right))
    assert (found and found.sql()) == result


def test_casts_that_exist() -> None:
    assert can_cast(parse_type("STRING"), parse_type("TIMESTAMP(3)"))
    assert not can_cast(parse_type("BIGINT"), parse_type("TIMESTAMP(3)"))
    assert not can_cast(parse_type("ROW<a INT>"), parse_type("STRING"))


def test_what_a_sink_takes_uncast() -> None:
    assert assignable(parse_type("INT"), parse_type("BIGINT"))
    assert assignable(parse_type("TIMESTAMP(3)"), parse_type("TIMESTAMP_LTZ(3)"))
    assert assignable(parse_type("DOUBLE"), parse_type("DECIMAL(10, 2)"))
    assert assignable(parse_type("DECIMAL(10, 2)"), parse_type("FLOAT"))
    assert not assignable(parse_type("BIGINT"), parse_type("INT"))
    assert not assignable(parse_type("DOUBLE"), parse_type("FLOAT"))
    assert not assignable(parse_type("INT"), parse_type("STRING"))
    assert not assignable(parse_type("STRING"), parse_type("INT"))
