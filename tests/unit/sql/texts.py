"""Job files for tests: `<append>` and `<upsert>` stand for complete WITH clauses."""

import pytest

from spark_jobs.errors import PositionedError, SqlErrors
from spark_jobs.sql.bind.binder import bind

OPTIONS = "'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092'"
CLAUSES = {
    "<append>": "WITH ('connector' = 'kafka', 'format' = 'json', <options>)",
    "<upsert>": "WITH ('connector' = 'upsert-kafka', 'key.format' = 'json', "
    "'value.format' = 'json', <options>)",
    "<options>": OPTIONS,
}


def script(*parts: str) -> str:
    """The parts one after the other, with what the short forms stand for."""
    text = "\n".join(parts)
    for short, clause in CLAUSES.items():
        text = text.replace(short, clause)
    return text


TABLES = script(
    "CREATE TABLE A (a1 INT, a2 BIGINT, a3 STRING, r ROW<x INT>, ts TIMESTAMP(3)) <append>;"
    "CREATE TABLE B (b1 INT, a2 BIGINT, m MAP<STRING, INT>) <append>;"
    "CREATE TABLE C (c1 INT NOT NULL, c2 STRING) <append>;\n"
)


def problems(text: str) -> list[PositionedError]:
    with pytest.raises(SqlErrors) as caught:
        bind(script(text), "job.sql")
    return list(caught.value.errors)
