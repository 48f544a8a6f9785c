"""Options of tables that Debezium writes: what they mean together, and which are refused."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.text.explain import explain_text
from spark_jobs.sql.bind.binder import bind
from spark_jobs.sql.logical import Logical, Scan, inputs_of

_JOB = """
CREATE TABLE t (id STRING, v INT<key>) WITH ('connector' = 'kafka', 'topic' = 't',
  'properties.bootstrap.servers' = 'b', 'scan.startup.mode' = 'earliest-offset',
  'format' = '<format>'<options>);
CREATE TABLE s (id STRING, v INT) WITH ('connector' = 'kafka', 'topic' = 's',
  'properties.bootstrap.servers' = 'b', 'format' = 'debezium-json');
INSERT INTO s SELECT id, v FROM t
"""
_WRITTEN = "; INSERT INTO t SELECT id, v FROM t"


def job(format_: str = "debezium-json", key: bool = True, **options: str) -> str:
    given = {f"rejoin.debezium.{k.replace('_', '-')}": v for k, v in options.items()}
    listed = "".join(f", '{k}' = '{v}'" for k, v in given.items())
    text = _JOB.replace("<key>", ", PRIMARY KEY (id) NOT ENFORCED" if key else "")
    return text.replace("<format>", format_).replace("<options>", listed)


@pytest.mark.parametrize(
    ("text", "changelog"),
    [
        (job(), "upsert"),
        (job(key=False), "retract"),
        (job(replica_identity="full"), "retract"),
        (job(replica_identity="default"), "upsert"),
        (job("json", unwrapped="true"), "upsert"),
        (job("json", unwrapped="false"), "append"),
    ],
)
def test_how_rows_change(text: str, changelog: str) -> None:
    assert bind(text, "job.sql").inserts
    [table] = [t for n, t in _tables(text).items() if n == "t"]
    assert table == changelog


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (job("json", key=False, unwrapped="true"), "NO_PRIMARY_KEY"),
        (job(unwrapped="true"), "OPTION_CONFLICT"),
        (job("json", replica_identity="full"), "OPTION_CONFLICT"),
        (job("json", unwrapped="true", replica_identity="full"), "OPTION_CONFLICT"),
        (job("json", timestamp_unit="micros"), "OPTION_CONFLICT"),
        (job(timestamp_unit="seconds"), "OPTION_VALUE"),
        (job(key_changes="heal", key=False), "OPTION_CONFLICT"),
        (job(key_changes="heal", replica_identity="full"), "OPTION_CONFLICT"),
        (job(key_changes="heal", unavailable="reject"), "OPTION_CONFLICT"),
        (job(key_change_wait="1 h"), "OPTION_CONFLICT"),
        (job(key_changes="heal", key_change_wait="soon"), "OPTION_VALUE"),
        (job("json", key_changes="heal"), "OPTION_CONFLICT"),
        (job(nothing="x"), "UNKNOWN_OPTION"),
        (
            job(decimals="base64").replace(
                "'rejoin.debezium.decimals'", "'debezium-json.schema-include' = 'true',"
                " 'rejoin.debezium.decimals'",
            ),
            "OPTION_CONFLICT",
        ),
        (
            job("json", unwrapped="true").replace("v INT, PRIMARY", "__deleted INT, PRIMARY"),
            "OPTION_CONFLICT",
        ),
        (
            job("json", unwrapped="true") + _WRITTEN,
            "UNSUPPORTED_OPTION",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, code: str) -> None:
    with pytest.raises(SqlErrors) as problems:
        bind(text, "job.sql")
    assert code in problems.value.codes


@pytest.mark.parametrize(
    ("text", "warns"),
    [
        (job(key=False), True),
        (job(key=False, replica_identity="full"), False),
        (job(), False),
        (job("json", unwrapped="true"), False),
    ],
)
def test_whole_rows_of_unknown_identity_are_warned_of(text: str, warns: bool) -> None:
    assert ("REPLICA IDENTITY FULL makes complete" in explain_text(text)) is warns


def _tables(text: str) -> dict[str, str]:
    found: dict[str, str] = {}

    def visit(node: Logical) -> None:
        if isinstance(node, Scan):
            found[node.table.name] = node.table.changelog
        for below in inputs_of(node):
            visit(below)

    for insert in bind(text, "job.sql").inserts:
        visit(insert)
    return found
