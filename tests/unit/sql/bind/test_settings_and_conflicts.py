"""SET and WITH options of the joins, and ON CONFLICT."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind, bind_query
from tests.unit.sql.texts import script

TABLES = script(
    "CREATE TABLE A (a INT NOT NULL, b INT) <append>;",
    "CREATE TABLE S (k INT, b INT, PRIMARY KEY (k) NOT ENFORCED) <upsert>;",
)


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("table.exec.state.ttl", "1 d", "1 fortnight"),
        ("table.exec.interval-join.min-cleanup-interval", "5 min", "-1"),
        ("rejoin.interval-join.min-cleanup-rule", "half", "third"),
        ("rejoin.watermark.policy", "max", "avg"),
        ("table.exec.source.idle-timeout", "10 s", "soon"),
        ("table.exec.source.cdc-events-duplicate", "true", "yes"),
        ("table.exec.sink.upsert-materialize", "FORCE", "always"),
        ("table.exec.sink.require-on-conflict", "true", "1"),
        ("table.exec.mini-batch.enabled", "true", "on"),
        ("rejoin.bootstrap.timeout", "2 min", "never"),
        ("rejoin.bootstrap.on-timeout", "go", "stop"),
        ("rejoin.temporal.late-probe", "join", "keep"),
        ("rejoin.late.topic", "late", " "),
    ],
)
def test_setting(name: str, value: str, wrong: str) -> None:
    query = script(TABLES, "SELECT a FROM A")
    assert bind_query(script(f"SET '{name}' = '{value}';", query)).settings.given == {name: value}
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(f"SET '{name}' = '{wrong}';", query))
    assert caught.value.codes == ("SETTING_VALUE",)


def with_options(*options: str) -> str:
    listed = ", ".join(("'connector' = 'kafka', 'format' = 'json', <options>", *options))
    return script(f"CREATE TABLE T (a INT) WITH ({listed});", "SELECT a FROM T")


def test_watermark_options_of_a_table() -> None:
    text = with_options(
        "'scan.watermark.idle-timeout' = '5 s'",
        "'scan.watermark.alignment.group' = 'g'",
        "'scan.watermark.alignment.max-drift' = '1 min'",
    )
    table = bind_query(text).tables["T"]
    assert table.options.kafka.idle_timeout_ms == 5_000
    assert table.options.kafka.alignment_drift_ms == 60_000


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("'scan.watermark.alignment.group' = 'g'", "'scan.watermark.alignment.max-drift'"),
        ("'scan.watermark.alignment.max-drift' = '1 s'", "'scan.watermark.alignment.group'"),
        ("'scan.watermark.alignment.update-interval' = '1 s'", "each micro-batch compares"),
        ("'scan.watermark.idle-timeout' = 'x'", "a duration such as"),
        ("'scan.watermark.idle' = '1 s'", "scan.watermark.idle-timeout"),
    ],
)
def test_watermark_option_problem(option: str, says: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        bind_query(with_options(option))
    assert says in caught.value.render()


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("", None),
        ("ON CONFLICT DO DEDUPLICATE", "deduplicate"),
        ("ON CONFLICT DO NOTHING", "nothing"),
        ("on conflict do error", "error"),
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, b FROM A",
        "SELECT x.a, x.b FROM A x CROSS JOIN A y",
        "SELECT x.a, x.b FROM A x JOIN A y ON x.a = y.b",
        "SELECT a, b FROM A WHERE a > 1",
        "SELECT a, b FROM A UNION ALL SELECT b, a FROM A",
    ],
)
def test_on_conflict(query: str, clause: str, expected: str | None) -> None:
    (sink,) = bind(script(TABLES, "INSERT INTO S", query, clause)).inserts
    assert sink.on_conflict == expected


def test_on_conflict_in_a_statement_set() -> None:
    text = script(
        TABLES,
        "EXECUTE STATEMENT SET BEGIN",
        "INSERT INTO S SELECT a, b FROM A ON CONFLICT DO NOTHING;",
        "INSERT INTO S SELECT b, a FROM A; END;",
    )
    assert [s.on_conflict for s in bind(text).inserts] == ["nothing", None]


@pytest.mark.parametrize(
    ("clause", "says"),
    [
        ("ON CONFLICT DO DEDUPLICAT", "did you mean 'DEDUPLICATE'?"),
        ("ON CONFLICT DO UPDATE", "no conflict strategy UPDATE"),
        ("ON CONFLICT", "unexpected 'ON'"),
    ],
)
def test_on_conflict_problem(clause: str, says: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        bind(script(TABLES, "INSERT INTO S SELECT a, b FROM A", clause))
    assert says in caught.value.render()
