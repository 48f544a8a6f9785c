"""Every conformance query binds with the types it is known to have."""

import json
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.types.data_types import with_nullable
from spark_jobs.sql.types.type_text import parse_type

# the collection stands beside the repository, at whatever depth that is checked out
CASES = next(
    (
        cases
        for folder in Path(__file__).parents
        if (cases := folder / "shared" / "conformance" / "sql").is_dir()
    ),
    Path("no-conformance-cases"),
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


def create_function(name: str, function: dict[str, Any]) -> str:
    table, time, key = function["table"], function["time"], ", ".join(function["key"])
    declared = f"FOR {table} TIME ATTRIBUTE {time} PRIMARY KEY ({key})"
    return f"CREATE TEMPORAL TABLE FUNCTION {name} {declared};"


def script(case: dict[str, Any]) -> str:
    tables = [create_table(n, t) for n, t in case["tables"].items()]
    views = [f"CREATE VIEW {n} AS {q};" for n, q in (case.get("views") or {}).items()]
    declared = (case.get("config") or {}).get("temporal_table_functions") or {}
    functions = [create_function(n, f) for n, f in declared.items()]
    return "\n".join((*tables, *views, *functions, case["query"]))


def paths() -> list[Path]:
    return sorted(CASES.glob("*.json"))


@pytest.mark.parametrize("path", paths(), ids=[p.stem for p in paths()])
def test_query_binds(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    fields = bind_query(script(case), case["name"]).query.fields
    found = [with_nullable(f.type, True) for f in fields]
    assert found == [with_nullable(parse_type(t), True) for _, t in case["output_columns"]]
