"""Types of constants and calls; the expected ones are those that Flink 2.3 gives."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind_query
from tests.unit.sql.texts import script

TABLE = """CREATE TABLE a (id INT NOT NULL, m DECIMAL(10, 2) NOT NULL, s STRING NOT NULL,
day DATE NOT NULL, at TIMESTAMP(0) NOT NULL) <append>;"""


def type_of(expression: str) -> str:
    (field,) = bind_query(script(TABLE, "SELECT", expression, "FROM a")).query.fields
    return field.type.sql()


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("0", "INT"),
        ("0.", "INT"),
        ("007", "INT"),
        ("-2147483648", "INT"),
        ("-(2147483648)", "INT"),
        ("- -2147483648", "BIGINT"),
        ("+2147483648", "BIGINT"),
        ("2147483648.", "BIGINT"),
        ("-2147483649", "BIGINT"),
        ("9223372036854775807", "BIGINT"),
        ("-9223372036854775808", "BIGINT"),
        (".5", "DECIMAL(1, 1)"),
        ("0.5", "DECIMAL(2, 1)"),
        ("-0.5", "DECIMAL(2, 1)"),
        ("00.5", "DECIMAL(3, 1)"),
        (".05", "DECIMAL(2, 2)"),
        ("0.05", "DECIMAL(3, 2)"),
        ("0.50", "DECIMAL(3, 2)"),
        ("0.0", "DECIMAL(2, 1)"),
        ("007.50", "DECIMAL(5, 2)"),
        ("0.00000000000000000000000000000000000001", "DECIMAL(38, 38)"),
        ("0000000000000000000000000000000000000000000.5", "DECIMAL(38, 1)"),
        ("1e3", "DOUBLE"),
        (".5e3", "DOUBLE"),
        ("1.E+3", "DOUBLE"),
        ("1e-400", "DOUBLE"),
        ("0.5 * 0.5", "DECIMAL(5, 2)"),
        ("m * 0.05", "DECIMAL(14, 4)"),
        ("m / 0.5", "DECIMAL(15, 6)"),
        ("m / 0.00003", "DECIMAL(22, 9)"),
        ("1 + 0.5", "DECIMAL(12, 1)"),
        ("0.1 / 3", "DECIMAL(13, 12)"),
        ("m % 0.3", "DECIMAL(3, 2)"),
        ("ROUND(0.55, 1)", "DECIMAL(3, 1)"),
        ("m IS DISTINCT FROM NULL", "BOOLEAN"),
        ("LPAD(s, 3, 'b')", "STRING"),
        ("DAYOFWEEK(day)", "BIGINT"),
        ("YEAR(at)", "BIGINT"),
    ],
)
def test_not_null(expression: str, type_: str) -> None:
    assert type_of(expression) == f"{type_} NOT NULL"


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("NULLIF(m, NULL)", "DECIMAL(10, 2)"),
        ("m BETWEEN NULL AND 2", "BOOLEAN"),
        ("m IN (NULL, 2)", "BOOLEAN"),
        ("NULL = m", "BOOLEAN"),
        ("REVERSE('abc')", "STRING"),
        ("SUBSTRING('abc', 2)", "STRING"),
        ("LEFT(s, 1)", "STRING"),
        ("DATE_FORMAT(at, 'yyyy')", "STRING"),
        ("TO_TIMESTAMP_LTZ(id, 3)", "TIMESTAMP_LTZ(3)"),
    ],
)
def test_nullable(expression: str, type_: str) -> None:
    assert type_of(expression) == type_


@pytest.mark.parametrize(
    ("expression", "code", "message"),
    [
        ("9223372036854775808", "BAD_LITERAL", "9223372036854775808 is beyond BIGINT"),
        ("-9223372036854775809", "BAD_LITERAL", "-9223372036854775809 is beyond BIGINT"),
        ("1e400", "BAD_LITERAL", "1e400 is beyond DOUBLE"),
        ("0." + "0" * 38 + "1", "BAD_LITERAL", "more than 38 digits"),
        ("1e3.x", "BAD_LITERAL", "1e3. is not a number"),
        ("1e", "BAD_LITERAL", "1e is not a number"),
        ("YEAR(s)", "WRONG_ARGUMENT", "EXTRACT is STRING"),
        ("HOUR(id)", "WRONG_ARGUMENT", "EXTRACT is INT"),
        ("YEAR()", "WRONG_ARGUMENT", "YEAR takes 1 argument, not 0"),
        ("YEAR(day, 1)", "WRONG_ARGUMENT", "YEAR takes 1 argument, not 2"),
    ],
)
def test_refused(expression: str, code: str, message: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        type_of(expression)
    (error,) = caught.value.errors
    assert error.code == code
    assert message in str(error)
