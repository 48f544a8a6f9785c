"""What real-time mode refuses: by code, place and hint."""

import re

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.nodes.physical import KafkaSink, SinkMaterializer
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind

AT = "`at` TIMESTAMP_LTZ(3), WATERMARK FOR `at` AS `at`"


def table(name: str, columns: str, connector: str = "kafka", **options: str) -> str:
    given = {
        "connector": connector,
        "topic": name,
        "properties.bootstrap.servers": "b:1",
        "value.format": "json",
        **({"key.format": "json"} if connector == "upsert-kafka" else {}),
        **{k.replace("__", ".").replace("_", "-"): v for k, v in options.items()},
    }
    listed = ", ".join(f"'{k}' = '{v}'" for k, v in given.items())
    return f"CREATE TABLE {name} ({columns}) WITH ({listed});\n"


def job(query: str, **sink: str) -> str:
    return (
        "SET 'rejoin.mode' = 'real-time';\n"
        + table("orders", f"id BIGINT, item BIGINT, {AT}")
        + table("names", "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED", "upsert-kafka")
        + table("users", "id BIGINT, name_id BIGINT, PRIMARY KEY (id) NOT ENFORCED", "upsert-kafka")
        + table("ending", "id BIGINT, item BIGINT", scan__bounded__mode="latest-offset")
        + table(
            "aligned",
            f"id BIGINT, {AT}",
            scan__watermark__alignment__group="g",
            scan__watermark__alignment__max_drift="1 s",
        )
        + table("found", "id BIGINT, item BIGINT", topic_pattern="orders-.*", topic="").replace(
            "'topic' = '', ", ""
        )
        + "CREATE FUNCTION shout AS 'tests.unit.plan.check.test_real_time_refusals.shout' "
        "LANGUAGE PYTHON;\n"
        + table("changes", "id BIGINT, name STRING", value__format="debezium-json")
        + table(
            "keyed",
            "id BIGINT, name STRING",
            value__format="debezium-json",
            key__format="json",
            key__fields="name",
            sink__delivery_guarantee="exactly-once",
        )
        + table("plain", "id BIGINT, name STRING")
        + table(
            "named", "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED", "upsert-kafka", **sink
        )
        + query
    )


def shout(text: str | None) -> str | None:
    return text and text.upper()


NAMED = "INSERT INTO named SELECT o.item, c.name FROM orders o LEFT JOIN names c ON o.item = c.id"

REFUSED = [
    (
        "INSERT INTO named SELECT id, name FROM names;",
        {"sink__delivery_guarantee": "exactly-once"},
        "REAL_TIME_DELIVERY",
        "'sink.delivery-guarantee' of named asks for transactions",
    ),
    (
        NAMED.replace("INTO named", "INTO keyed") + ";",
        {},
        "REAL_TIME_DELIVERY",
        "come from many",
    ),
    (
        f"{NAMED};",
        {"sink__transactional_id_prefix": "mine"},
        "REAL_TIME_DELIVERY",
        "'sink.transactional-id-prefix' of named",
    ),
    (NAMED.replace("named", "changes") + ";", {}, "REAL_TIME_DELIVERY", "would count twice"),
    (
        "INSERT INTO named SELECT e.item, c.name FROM ending e JOIN names c ON e.item = c.id;",
        {},
        "REAL_TIME_BOUNDED",
        "of ending",
    ),
    (
        "INSERT INTO plain SELECT id, 'x' FROM aligned;",
        {},
        "REAL_TIME_ALIGNMENT",
        "of aligned",
    ),
    (
        "INSERT INTO named SELECT u.id, c.name FROM users u LEFT JOIN names c ON u.name_id = c.id;",
        {},
        "REAL_TIME_PLAN",
        "the rows of normalize and 1-names meet in regular-join",
    ),
    (
        " ".join((NAMED, "UNION ALL SELECT id, name FROM names;")),
        {},
        "REAL_TIME_PLAN",
        "",
    ),
    (
        "INSERT INTO named SELECT f.item, c.name FROM found f JOIN names c ON f.item = c.id;",
        {},
        "REAL_TIME_TOPICS",
        "of found",
    ),
    (
        ";\n".join((NAMED, "INSERT INTO plain SELECT id, 'x' FROM orders;")),
        {},
        "REAL_TIME_QUERIES",
        "one INSERT",
    ),
]


@pytest.mark.parametrize(("query", "sink", "code", "words"), REFUSED)
def test_refusals_have_a_place_and_a_way_out(
    query: str, sink: dict[str, str], code: str, words: str
) -> None:
    text = job(query, **sink)
    with pytest.raises(SqlErrors) as refused:
        plan(bind(text, "job.sql"))
    found = [error for error in refused.value.errors if error.code == code]
    assert found, refused.value
    assert words in found[0].message
    assert found[0].hint
    lines = text.split("\n")
    assert lines[found[0].line - 1].startswith("INSERT")
    micro_batch = re.sub("'real-time'", "'micro-batch'", text)
    assert plan(bind(micro_batch, "job.sql"))


def test_python_functions_are_refused() -> None:
    text = job(NAMED.replace("c.name", "shout(c.name)") + ";")
    with pytest.raises(SqlErrors, match="SHOUT cannot be called in real-time mode"):
        plan(bind(text, "job.sql"))


def test_an_exchange_becomes_a_materialiser_of_whole_rows() -> None:
    """Nothing else puts the changes of a sink key in order that leave several tasks."""
    (query,) = plan(bind(job(f"{NAMED};"), "job.sql"))
    assert isinstance(query.root, KafkaSink)
    assert query.root.guarantee == "at-least-once"
    assert not query.root.exchange
    last = stateful_nodes(query.root)[0].machine
    assert isinstance(last, SinkMaterializer)
    assert last.upsert_key == ()


@pytest.mark.parametrize("length", ["4 s", "1"])
def test_an_epoch_has_a_least_length(length: str) -> None:
    with pytest.raises(SqlErrors, match="SETTING_VALUE"):
        bind(f"SET 'rejoin.real-time.batch-interval' = '{length}';\n" + job(""), "job.sql")


@pytest.mark.parametrize(
    ("sink", "setting"),
    [
        ({}, "rejoin.real-time.commit-interval"),
        ({"sink__delivery_guarantee": "exactly-once"}, "rejoin.real-time.watermark-interval"),
    ],
)
def test_a_setting_of_the_other_guarantee_is_told(sink: dict[str, str], setting: str) -> None:
    text = f"SET '{setting}' = '5 ms';\n" + job(f"{NAMED};", **sink)
    (query,) = plan(bind(text, "job.sql"))
    told = [advice.text for advice in query.advice if setting in advice.text]
    assert any("has no effect here" in text for text in told), query.advice
