"""Every conformance query binds with the types it is known to have, or is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.errors import PositionedError, SqlErrors, UnsupportedError
from spark_jobs.sql.binder import bind_query
from spark_jobs.sql.type_text import parse_type
from spark_jobs.sql.types import with_nullable

CASES = Path(__file__).parents[3].parent / "shared" / "conformance" / "sql"
JOINS = {"cross", "multiway"} | {
    f"{kind}-{side}"
    for kind in ("regular", "interval", "interval-proc", "temporal", "temporal-proc")
    for side in ("inner", "left", "right", "full")
}
SUPPORTED = JOINS | {"normalize"}
REFUSED_WORDS = (
    "aggregate function",
    "GROUP BY",
    "OVER",
    "EXISTS",
    "IN (SELECT ...)",
    "a subquery in an expression",
    "the table function",
)
CONNECTORS = {
    "append": "'connector' = 'kafka', 'format' = 'json'",
    "retract": "'connector' = 'kafka', 'format' = 'changelog-json'",
    "upsert": "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'",
}


def create_table(name: str, table: dict[str, Any]) -> str:
    items = [f"`{column}` {type_}" for column, type_ in table["columns"]]
    items += [f"`{c}` AS {e}" for c, e in (table.get("computed") or {}).items()]
    if table["primary_key"]:
        items.append(f"PRIMARY KEY ({', '.join(table['primary_key'])}) NOT ENFORCED")
    if watermark := table["watermark"]:
        column, delay_s = watermark["column"], watermark["delay_ms"] / 1000
        items.append(f"WATERMARK FOR `{column}` AS `{column}` - INTERVAL '{delay_s}' SECOND")
    options = f"{CONNECTORS[table['changelog']]}, 'topic' = 't'"
    servers = "'properties.bootstrap.servers' = 'unused'"
    return f"CREATE TABLE `{name}` ({', '.join(items)}) WITH ({options}, {servers});"


def script(case: dict[str, Any]) -> str:
    tables = [create_table(n, t) for n, t in case["tables"].items()]
    views = [f"CREATE VIEW {n} AS {q};" for n, q in (case.get("views") or {}).items()]
    return "\n".join((*tables, *views, case["query"]))


def refusals(case: dict[str, Any]) -> tuple[PositionedError, ...]:
    try:
        bind_query(script(case), case["name"])
    except SqlErrors as problems:
        return problems.errors
    return ()


def paths() -> list[Path]:
    return sorted(CASES.glob("*.json"))


@pytest.mark.parametrize("path", paths(), ids=[p.stem for p in paths()])
def test_query_binds_or_is_refused_by_name(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    refused = refusals(case)
    if refused:
        assert all(isinstance(e, UnsupportedError) for e in refused), refused
        assert all(any(w in e.message for w in REFUSED_WORDS) for e in refused), refused
        assert case["requires"] or case.get("views") or case["kind"] not in SUPPORTED
        return
    assert case["kind"] in SUPPORTED
    fields = bind_query(script(case)).query.fields
    found = [with_nullable(f.type, True) for f in fields]
    assert found == [with_nullable(parse_type(t), True) for _, t in case["output_columns"]]
