"""Every query that must not be planned: by code, place and hint; docs/errors.md lists the codes."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from spark_jobs.errors import PositionedError, SqlErrors
from spark_jobs.plan.check.refusals import refusals
from spark_jobs.plan.rules.order import optimize
from spark_jobs.sql.bind.binder import Job

Jobs = Callable[[str], Job]

MORE_TABLES = """
CREATE TABLE ticks (id INT, v BIGINT, now_ AS PROCTIME(), late AS CAST(PROCTIME() AS STRING))
WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 'ticks',
'format' = 'json');
CREATE TABLE tocks (id INT, v BIGINT, now_ AS PROCTIME())
WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 'tocks',
'format' = 'json');
CREATE TABLE states (id INT, v BIGINT, now_ AS PROCTIME(), PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'properties.bootstrap.servers' = 'b:9092',
'topic' = 'states', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE clock (now_ AS PROCTIME(), v BIGINT)
WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 'clock',
'format' = 'json');
CREATE TABLE history (code STRING, rate BIGINT, since TIMESTAMP(3), WATERMARK FOR since AS since)
WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 'history',
'format' = 'json');
CREATE TABLE zoned (
  code STRING, rate BIGINT, since TIMESTAMP_LTZ(3),
  PRIMARY KEY (code) NOT ENFORCED, WATERMARK FOR since AS since
) WITH ('connector' = 'upsert-kafka', 'properties.bootstrap.servers' = 'b:9092',
'topic' = 'zoned', 'key.format' = 'json', 'value.format' = 'json');
CREATE VIEW latest AS SELECT code, rate, since FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY code ORDER BY since DESC) AS rn FROM history
) WHERE rn = 1;
CREATE TEMPORAL TABLE FUNCTION rates_by_rate FOR rates TIME ATTRIBUTE since PRIMARY KEY (rate);
CREATE VIEW timeless AS SELECT code, rate FROM latest;
CREATE VIEW high AS SELECT * FROM rates WHERE rate > 100;
CREATE VIEW high_latest AS SELECT * FROM latest WHERE rate > 100;
CREATE VIEW spread AS SELECT code, n, x, since FROM rates
CROSS JOIN UNNEST(SPLIT(code, ',')) WITH ORDINALITY AS u (x, n);
CREATE VIEW euro AS SELECT * FROM rates WHERE code = 'EUR';
"""

AS_OF = "rates FOR SYSTEM_TIME AS OF pay.at AS r"
RANKED = "(SELECT code, rate, ROW_NUMBER() OVER (PARTITION BY code ORDER BY {}) AS rn FROM {}) AS x"


class Refused(NamedTuple):
    """A query into a sink, the code that refuses it, and words that its message must have."""

    query: str
    code: str
    words: str
    sink: str = "retract_sink"


REFUSED = [
    # temporal joins
    Refused(
        f"id, currency FROM pay RIGHT JOIN {AS_OF} ON currency = code",
        "TEMPORAL_JOIN_KIND",
        "this is RIGHT JOIN",
    ),
    Refused(
        f"id, currency FROM pay FULL JOIN {AS_OF} ON currency = code WHERE id > 0",
        "TEMPORAL_JOIN_KIND",
        "this is FULL JOIN",
    ),
    Refused(
        "a1, currency FROM a JOIN pay ON a1 = id JOIN rates FOR SYSTEM_TIME AS OF pay.at AS r"
        " ON currency = code",
        "TEMPORAL_JOIN_TIME",
        "at is no time attribute any more",
    ),
    Refused(
        "a1, a3 FROM a JOIN rates FOR SYSTEM_TIME AS OF CAST(a.a3 AS TIMESTAMP(3)) AS r"
        " ON a3 = code",
        "TEMPORAL_JOIN_TIME",
        "left table's time attribute",
    ),
    Refused(
        "id, currency FROM pay JOIN zoned FOR SYSTEM_TIME AS OF pay.at AS r ON currency = r.code",
        "TEMPORAL_JOIN_TIME",
        "at is TIMESTAMP(3), the version time since is TIMESTAMP_LTZ(3)",
    ),
    Refused(
        "id, currency FROM pay JOIN changes FOR SYSTEM_TIME AS OF pay.at AS r ON id = c1",
        "TEMPORAL_JOIN_NO_WATERMARK",
        "no event time is declared",
    ),
    Refused(
        "id, currency FROM pay JOIN timeless FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code",
        "TEMPORAL_JOIN_NO_WATERMARK",
        "no event time is declared",
    ),
    Refused(
        "id, currency FROM pay JOIN history FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code",
        "TEMPORAL_JOIN_NO_PRIMARY_KEY",
        "no primary key is declared",
    ),
    Refused(
        f"id, currency FROM pay JOIN {AS_OF} ON country = land",
        "TEMPORAL_JOIN_KEY",
        "primary key (code)",
    ),
    Refused(
        "id, currency FROM pay JOIN latest FOR SYSTEM_TIME AS OF pay.at AS r ON amount = rate",
        "TEMPORAL_JOIN_KEY",
        "primary key (code)",
    ),
    Refused(
        "id, land FROM pay JOIN high FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code",
        "TEMPORAL_JOIN_FILTERED_VERSIONS",
        "corrupt its versions",
    ),
    Refused(
        "id, code FROM pay JOIN high_latest FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code",
        "TEMPORAL_JOIN_FILTERED_VERSIONS",
        "corrupt its versions",
    ),
    Refused(
        "id, x FROM pay JOIN spread FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code AND n = 1",
        "TEMPORAL_JOIN_FILTERED_VERSIONS",
        "corrupt its versions",
    ),
    Refused(
        "ticks.id, r.name FROM ticks JOIN users FOR SYSTEM_TIME AS OF ticks.now_ AS r"
        " ON ticks.id > r.id",
        "TEMPORAL_JOIN_NO_EQUALITY",
        "needs an equality",
    ),
    Refused(
        "a.a1, s.b3 FROM a JOIN LATERAL TABLE(SNAPSHOT(input => TABLE b)) AS s ON a1 < b1",
        "TEMPORAL_JOIN_NO_EQUALITY",
        "a LATERAL SNAPSHOT join needs an equality",
    ),
    Refused(
        "a.a1, s.b3 FROM a JOIN LATERAL TABLE(SNAPSHOT(input => TABLE b,"
        " load_completed_condition => 'user_time',"
        " load_completed_time => CAST(TIMESTAMP '2020-01-01 00:00:10' AS TIMESTAMP_LTZ(3)))) AS s"
        " ON a1 = b1",
        "SNAPSHOT_NO_WATERMARK",
        "no watermark",
    ),
    # interval joins
    Refused(
        "ticks.id, CAST(s.v AS STRING) FROM ticks LEFT JOIN states AS s ON ticks.id = s.id AND"
        " ticks.now_ BETWEEN s.now_ AND s.now_ + INTERVAL '1' HOUR",
        "INTERVAL_JOIN_UPDATES",
        "by processing time takes insertions only, but its right input is updated: table states",
    ),
    Refused(
        "/*+ EARLY_FIRE('delay' = '5s', 'time-mode' = 'rowtime') */ t.id, 'x' FROM ticks AS t"
        " LEFT JOIN tocks AS s ON t.id = s.id AND t.now_ BETWEEN s.now_ AND s.now_",
        "EARLY_FIRE_TIME",
        "by event time, but the interval join goes by processing time",
    ),
    Refused(
        "/*+ EARLY_FIRE('delay' = '5s', 'time-mode' = 'proctime') */ 1, r.code"
        " FROM history AS r LEFT JOIN history AS s ON r.code = s.code AND r.since = s.since",
        "EARLY_FIRE_TIME",
        "by processing time of an interval join by event time is not supported",
    ),
    Refused(
        "p.id, p.country FROM zoned AS r JOIN ticks AS t ON r.since = t.now_"
        " JOIN pay AS p ON p.id = t.id",
        "INTERVAL_JOIN_TIMES",
        "an event time with a processing time",
    ),
    # deduplication
    Refused(
        "1, code FROM " + RANKED.format("since DESC", "history"),
        "ROW_NUMBER_UNBOUNDED",
        "without a constant",
    ),
    Refused(
        "1, code FROM " + RANKED.format("since DESC", "history") + " WHERE rn >= 3",
        "ROW_NUMBER_UNBOUNDED",
        "without a constant",
    ),
    Refused(
        "1, code FROM " + RANKED.format("since DESC", "history") + " WHERE rn <= rate",
        "ROW_NUMBER_UNBOUNDED",
        "without a constant",
    ),
    Refused(
        "1, code FROM " + RANKED.format("rate DESC", "history") + " WHERE rn > 3 AND rn < 3",
        "TOP_N",
        "at least 4 and at most 2",
    ),
    Refused(
        "1, code FROM " + RANKED.format("ARRAY[rate]", "history") + " WHERE rn <= 3",
        "TOP_N",
        "whose values have no order",
    ),
    Refused(
        "1, name FROM (SELECT name, ROW_NUMBER() OVER (PARTITION BY name ORDER BY now_) AS rn"
        " FROM (SELECT name, PROCTIME() AS now_ FROM users)) AS x WHERE rn = 1",
        "PROCESSING_TIME",
        "reads the processing time",
    ),
    Refused(
        "p.id, r.code FROM pay AS p, LATERAL TABLE (rates_by_rate(p.at)) AS r WHERE p.id = r.rate",
        "DEDUPLICATE_UPDATES",
        "table rates has changelog mode upsert",
    ),
    # processing time
    Refused("id, CAST(now_ AS STRING) FROM ticks", "PROCESSING_TIME", "reads the processing time"),
    Refused("id, late FROM ticks", "PROCESSING_TIME", "of table ticks"),
    Refused(
        "id, 'x' FROM ticks WHERE now_ > TO_TIMESTAMP_LTZ(0, 3)",
        "PROCESSING_TIME",
        "of table ticks",
    ),
    Refused(
        "x.id, CAST(x.now_ AS STRING) FROM (SELECT t.id, t.now_ FROM ticks AS t"
        " JOIN tocks AS u ON t.id = u.id) AS x",
        "PROCESSING_TIME",
        "reads the processing time",
    ),
    Refused(
        "MAX(id), CAST(now_ AS STRING) FROM ticks GROUP BY now_",
        "PROCESSING_TIME",
        "reads the processing time",
    ),
    # sinks
    *(
        Refused(query, "UPDATES_INTO_APPEND_SINK", words, "append_sink")
        for query, words in [
            ("a1, b3 FROM a LEFT JOIN b ON a1 = b1", "a left join retracts rows that it padded"),
            ("a1, b3 FROM a FULL JOIN b ON a1 = b1", "a full join retracts rows"),
            ("a1, a3 FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a1 = b1)", "an anti join"),
            ("a1, a3 FROM a WHERE a1 IN (SELECT id FROM users)", "table users has changelog mode"),
            ("a1, name FROM a JOIN users ON a1 = id", "table users has changelog mode upsert"),
            ("id, name FROM users", "table users has changelog mode upsert"),
            ("c1, c2 FROM changes WHERE c1 > 0", "table changes has changelog mode retract"),
            ("a1, MAX(a3) FROM a GROUP BY a1", "an aggregate updates its group"),
            ("1, code FROM latest", "keeping the last row of a key"),
            ("a1, a3 FROM a UNION ALL SELECT id, name FROM users", "table users has"),
        ]
    ),
    Refused(
        "a1, a3 FROM a ON CONFLICT DO NOTHING", "ON_CONFLICT_SINK", "append mode", "append_sink"
    ),
    Refused(
        "id, b3 FROM pay JOIN b ON id = b1 ON CONFLICT DO ERROR",
        "ON_CONFLICT_NO_WATERMARK",
        "DO ERROR waits for the watermark, but b has none",
        "upsert_sink",
    ),
]


def problems(job: Job) -> list[PositionedError]:
    return [p for i in job.inserts for p in refusals(i, optimize(i, job.settings), job.settings)]


@pytest.mark.parametrize("case", REFUSED, ids=[f"{r.code}-{r.words[:30]}" for r in REFUSED])
def test_refused_by_name(case: Refused, job: Jobs) -> None:
    bound = job(f"{MORE_TABLES}INSERT INTO {case.sink} SELECT {case.query};")
    found = problems(bound)
    assert [p.code for p in found] == [case.code]
    (problem,) = found
    assert case.words in problem.message
    assert problem.line > 0
    assert problem.column > 0
    assert problem.hint


KEYS = [
    ("SET 'table.exec.sink.require-on-conflict' = 'true';", "", "require-on-conflict"),
    ("SET 'table.exec.sink.upsert-materialize' = 'NONE';", "", "upsert-materialize"),
]


@pytest.mark.parametrize(("setting", "conflict", "words"), KEYS)
@pytest.mark.parametrize(
    "query",
    [
        "id, name FROM users JOIN changes ON name = c2",
        "order_id, name FROM items JOIN users ON user_id = id",
        "a1, name FROM a LEFT JOIN users ON a1 = id",
        "id + 1, name FROM users",
    ],
)
def test_upsert_sink_of_another_key(
    query: str, setting: str, conflict: str, words: str, job: Jobs
) -> None:
    (found,) = problems(job(f"{setting}INSERT INTO upsert_sink SELECT {query}{conflict};"))
    assert found.code == "UPSERT_KEY"
    assert words in found.message
    assert found.hint
    assert problems(job(f"INSERT INTO upsert_sink SELECT {query};")) == []


def test_on_conflict_says_what_is_asked_for(job: Jobs) -> None:
    required = "SET 'table.exec.sink.require-on-conflict' = 'true';"
    query = "INSERT INTO upsert_sink SELECT id, land FROM pay LEFT JOIN rates ON country = land"
    (found,) = problems(job(f"{required}{query};"))
    assert found.code == "UPSERT_KEY"
    for strategy in ("DEDUPLICATE", "NOTHING", "ERROR"):
        assert problems(job(f"{required}{query} ON CONFLICT DO {strategy};")) == []


def test_the_looked_up_side_holds_no_watermark_back(job: Jobs) -> None:
    bound = job(
        "CREATE VIEW p AS SELECT *, PROCTIME() AS now_ FROM pay;"
        "INSERT INTO upsert_sink SELECT p.id, b3 FROM p JOIN b FOR SYSTEM_TIME AS OF p.now_ AS r"
        " ON p.id = r.b1 ON CONFLICT DO NOTHING;"
    )
    assert problems(bound) == []


@pytest.mark.parametrize(
    ("query", "sink"),
    [
        ("a1, a3 FROM a WHERE a2 > 0", "append_sink"),
        ("a1, b3 FROM a JOIN b ON a1 = b1", "append_sink"),
        ("a1, a3 FROM a WHERE a1 IN (SELECT b1 FROM b)", "append_sink"),
        ("DISTINCT a1, a3 FROM a", "append_sink"),
        ("a1, a3 FROM a UNION ALL SELECT b1, b3 FROM b", "append_sink"),
        (f"id, land FROM pay LEFT JOIN {AS_OF} ON currency = code", "append_sink"),
        ("id, code FROM pay JOIN latest FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code"
         " AND rate > 100", "append_sink"),
        # a filter over the key takes whole keys away
        ("id, land FROM pay JOIN euro FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code",
         "append_sink"),
        ("t.id, r.name FROM ticks AS t LEFT JOIN users FOR SYSTEM_TIME AS OF t.now_ AS r"
         " ON t.id = r.id", "append_sink"),
        ("t.id, r.b3 FROM ticks AS t JOIN b FOR SYSTEM_TIME AS OF t.now_ AS r ON r.b1 = 1",
         "append_sink"),
        ("t.id, 'x' FROM ticks AS t FULL JOIN tocks AS u ON t.id = u.id AND t.now_ BETWEEN u.now_"
         " AND u.now_ + INTERVAL '5' SECOND", "append_sink"),
        ("t.id, l.name FROM ticks AS t JOIN users FOR SYSTEM_TIME AS OF t.now_ AS r ON t.id = r.id"
         " LEFT JOIN users FOR SYSTEM_TIME AS OF t.now_ AS l ON l.id = r.id", "append_sink"),
        # no row of the clock is read, only that there is one
        ("a1, a3 FROM a, clock", "append_sink"),
        ("p.id, r.code FROM pay AS p LEFT JOIN history AS r ON p.at = r.since", "append_sink"),
        ("1, code FROM " + RANKED.format("since", "history") + " WHERE rn = 1", "append_sink"),
        # the first row of a primary key of an upsert table is its row
        ("1, name FROM (SELECT id, name, ROW_NUMBER() OVER (PARTITION BY id ORDER BY now_) AS rn"
         " FROM (SELECT id, name, PROCTIME() AS now_ FROM users)) AS x WHERE rn = 1",
         "retract_sink"),
        ("id, name FROM users", "upsert_sink"),
        ("id, name FROM users JOIN changes ON id = c1", "upsert_sink"),
        ("a1, MAX(a3) FROM a GROUP BY a1", "upsert_sink"),
        ("a1, MAX(a3) FROM a WHERE FALSE GROUP BY a1", "upsert_sink"),
        ("MAX(a1), 'x' FROM a LEFT JOIN b ON FALSE", "retract_sink"),
        # one row of no rows never changes
        ("MAX(a1), 'x' FROM a WHERE FALSE", "append_sink"),
        ("MAX(a1), 'x' FROM a WHERE 1 = 2 AND a1 > 0", "append_sink"),
        ("MAX(a1), 'x' FROM a WHERE a1 = NULL", "append_sink"),
        ("MAX(a1), 'x' FROM a JOIN b ON a1 = b1 WHERE FALSE", "append_sink"),
        ("MAX(a1), 'x' FROM a JOIN b ON a1 = b1 AND FALSE", "append_sink"),
        ("MAX(a1), 'x' FROM (SELECT * FROM a WHERE FALSE) AS e", "append_sink"),
        ("2, 'x' FROM a GROUP BY ()", "append_sink"),
        ("2, 'x' FROM a HAVING TRUE", "append_sink"),
        # insertions only: the last one wins, as in Flink
        ("a1, b3 FROM a JOIN b ON a1 = b1", "upsert_sink"),
    ],
)  # fmt: skip
def test_accepted(query: str, sink: str, job: Jobs) -> None:
    settings = "SET 'table.exec.sink.upsert-materialize' = 'NONE';"
    bound = job(f"{settings}{MORE_TABLES}INSERT INTO {sink} SELECT {query};")
    assert problems(bound) == []


@pytest.mark.parametrize(
    "query",
    [
        "id, r.code FROM pay JOIN rates FOR SYSTEM_TIME AS OF r.since AS r ON currency = r.code",
        "id, r.code FROM rates FOR SYSTEM_TIME AS OF pay.at AS r JOIN pay ON currency = r.code",
    ],
)
def test_version_time_of_the_wrong_table_does_not_bind(query: str, job: Jobs) -> None:
    with pytest.raises(SqlErrors) as refused:
        job(f"INSERT INTO append_sink SELECT {query};")
    assert refused.value.errors[0].line > 0


def test_all_problems_of_a_file_are_told(job: Jobs) -> None:
    found = problems(
        job(
            "INSERT INTO append_sink SELECT a1, b3 FROM a LEFT JOIN b ON a1 = b1;\n"
            "INSERT INTO append_sink SELECT id, currency FROM pay"
            " FULL JOIN rates FOR SYSTEM_TIME AS OF pay.at AS r ON country = land;"
        )
    )
    assert [p.code for p in found] == [
        "UPDATES_INTO_APPEND_SINK",
        "TEMPORAL_JOIN_KIND",
        "TEMPORAL_JOIN_KEY",
    ]


def documented() -> Iterator[str]:
    page = (Path(__file__).parents[4] / "docs" / "errors.md").read_text(encoding="utf-8")
    planning = page.partition("## Planning")[2].partition("\n## ")[0]
    yield from re.findall(r"^\| `(\w+)` \|", planning, re.MULTILINE)


def test_every_documented_refusal_is_shown_here() -> None:
    # whether inputs end is known when a query is started
    shown = {case.code for case in REFUSED} | {"UPSERT_KEY", "MIXED_BOUNDED_INPUTS"}
    lookups = {"LOOKUP_ONLY", "LOOKUP_TIME", "LOOKUP_KEY"}  # tests/unit/plan/test_lookup.py
    assert set(documented()) == shown | lookups
