"""How cases become jobs, machines and batches; no JVM."""

from typing import Any

import pytest

from spark_jobs.scenario.file import Scenario
from spark_jobs.scenario.runner import bind_scenario
from tests.conformance.feeding import feedings
from tests.conformance.job import Place, job_text
from tests.conformance.mini_batch import folded
from tests.conformance.nodes import has_faults, node_of, passes

LOOKUP: dict[str, Any] = {
    "name": "lookup",
    "kind": "temporal-proc-inner",
    "requires": [],
    "query": "SELECT p.a, b.d FROM p JOIN b FOR SYSTEM_TIME AS OF p.t AS b ON p.a = b.c",
    "views": {},
    "tables": {
        "p": {
            "columns": [["a", "INT"]],
            "computed": {"t": "PROCTIME()"},
            "changelog": "append",
            "rows": [["+I", 1], ["+I", 2]],
        },
        "b": {
            "columns": [["c", "INT"], ["d", "STRING"]],
            "primary_key": ["c"],
            "changelog": "upsert",
            "rows": [["+I", 1, "x"], ["+U", 1, "y"]],
        },
    },
    "output_columns": [["a", "INT"], ["d", "STRING"]],
    "expected_final": [[1, "y"]],
}
SIDES: dict[str, Any] = {
    name: {
        "columns": [[f"{name}_id", "INT"], [f"{name}_k", "INT"]],
        "join_key": [f"{name}_k"],
        "unique_key": [f"{name}_id"],
        "state_layout": "HasUniqueKey",
    }
    for name in ("left", "right")
}


def joined(*events: Any) -> dict[str, Any]:
    columns = [c for side in SIDES.values() for c, _ in side["columns"]]
    config = {**SIDES, "join_type": "inner", "output_columns": columns}
    return {"operator": "regular", "config": config, "events": events, "expected": []}


def left(kind: str, ident: int, key: int) -> list[Any]:
    return ["left", kind, {"left_id": ident, "left_k": key}]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([left("+I", 1, 1), left("-U", 1, 1), left("+U", 1, 1)], False),
        ([left("+I", 1, 1), left("+U", 1, 1)], True),
        ([left("-D", 1, 1)], True),
        ([left("+I", 1, 1), left("+I", 1, 2)], False),  # another join key: another row
    ],
)
def test_faulty_input_is_told_from_a_changelog(events: list[Any], expected: bool) -> None:
    assert has_faults(joined(*events)) == expected
    assert node_of(joined(*events)).get("inputFaults") == ("trust" if expected else None)


def test_mini_batches_fold_by_unique_key() -> None:
    def kinds(*kinds: str) -> list[str]:
        rows = folded([[0, kind, [1, n]] for n, kind in enumerate(kinds)], [[0]])
        return [kind for _, kind, _ in rows]

    assert kinds("+I", "-D") == []
    assert kinds("+I", "+U", "+U") == ["+U"]
    assert kinds("-U", "+U") == ["-U", "+U"]
    assert kinds("-U", "-D") == ["-D"]


def test_mini_batches_without_a_key_count_rows() -> None:
    rows = [[0, "-U", [1]], [0, "+I", [1]], [0, "+I", [1]], ["watermark", 0, 5]]
    assert folded(rows, [[0]]) == [[0, "+I", [1]], ["watermark", 0, 5]]


def test_a_multi_join_is_keyed_by_what_all_inputs_share() -> None:
    inputs = {
        f"input{i}": {"columns": [[f"k{i}", "INT"], [f"v{i}", "INT"]], "unique_key": None}
        for i in range(3)
    }
    conditions = [
        {"join": "input1", "on": ["k0 = k1", "v0 = v1", "v0 > 3"]},
        {"join": "input2", "on": ["k1 = k2"]},
    ]
    config = {
        "implementation": "multi-join",
        "inputs": inputs,
        "join_types": ["left", "inner"],
        "conditions": conditions,
        "output_columns": ["k0"],
    }
    node = node_of({"operator": "regular", "config": config, "events": [], "expected": []})
    assert [row["key"] for row in node["rows"]] == [[0], [0], [0]]
    assert node["residuals"] == ["(`v0` = `v1`) AND (`v0` > 3)", "(`k1` IS NOT NULL)"]


def test_filters_read_null_as_sql_does() -> None:
    assert passes(None, {"v": 1})
    assert passes("v > 10 OR w IS NULL", {"v": None, "w": None})
    assert not passes("v > 10", {"v": None})


def test_build_sides_are_loaded_first_or_behind_a_closed_gate() -> None:
    bound = bind_scenario(Scenario("lookup", job_text(LOOKUP), ()))
    ways = {way.name: way for way in feedings(LOOKUP, [plan.root for plan in bound.plans])}
    assert [a if isinstance(a, tuple) else len(a) for a in ways["build side first"].actions] == [
        2,
        ("loaded", "b"),
        1,
        1,
    ]
    assert ways["probe side first"].actions[-1] == ("loaded", "b")
    assert ways["build side first"].says_loaded


def test_job_texts_carry_what_the_case_configures() -> None:
    config = {
        "state_ttl_ms": {"p": 1000},
        "mini_batch": True,
        "temporal_table_functions": {"F": {"table": "b", "time": "t", "key": ["c"]}},
    }
    place = Place("there:1", "x-", {"scan.startup.mode": "earliest-offset"})
    text = job_text({**LOOKUP, "config": config}, place)
    assert "SELECT /*+ STATE_TTL('p' = '1000ms') */ p.a" in text
    assert "SET 'table.exec.mini-batch.enabled' = 'true';" in text
    function = "CREATE TEMPORAL TABLE FUNCTION `F` FOR `b` TIME ATTRIBUTE `t` PRIMARY KEY (`c`);"
    assert function in text
    assert "'topic' = 'x-p', 'properties.bootstrap.servers' = 'there:1'" in text
    assert text.count("scan.startup.mode") == 1  # upsert-kafka has no such option


def test_a_key_that_the_rows_break_is_not_declared() -> None:
    rows = [["+I", 1, "x"], ["+I", 1, "y"]]
    broken = {**LOOKUP["tables"]["b"], "changelog": "retract", "rows": rows}
    tables = {**LOOKUP["tables"], "b": broken}
    assert "PRIMARY KEY" not in job_text({**LOOKUP, "tables": tables})
