"""The runner of conformance cases, on small cases of the same format."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.__main__ import main
from tests.conformance.job import job_text

SQL_CASE: dict[str, Any] = {
    "name": "left_by_name",
    "kind": "regular-left",
    "requires": [],
    "query": "SELECT a, b, d FROM l LEFT JOIN r ON a = c",
    "views": {},
    "tables": {
        "l": {
            "columns": [["a", "INT"], ["b", "STRING"]],
            "primary_key": ["a"],
            "watermark": None,
            "changelog": "upsert",
            "restart_after": 2,
            "rows": [["+I", 1, "x"], ["+I", 2, "y"], ["+U", 2, "z"], ["-D", 1, None]],
        },
        "r": {
            "columns": [["c", "INT"], ["d", "STRING"]],
            "primary_key": None,
            "watermark": None,
            "changelog": "retract",
            "rows": [["+I", 2, "one"], ["+I", 2, "two"], ["-D", 2, "one"]],
        },
    },
    "output_columns": [["a", "INT"], ["b", "STRING"], ["d", "STRING"]],
    "expected_final": [[2, "z", "two"]],
}
OPERATOR_CASE: dict[str, Any] = {
    "name": "keep_last",
    "operator": "normalize",
    "config": {
        "columns": [["k", "BIGINT"], ["v", "INT"]],
        "key": ["k"],
        "output_columns": ["k", "v"],
        "generate_update_before": True,
        "filter": "v > 10",
    },
    "events": [
        ["input", "+U", {"k": 1, "v": 12}],
        ["checkpoint_and_restore"],
        ["input", "+U", {"k": 1, "v": 15}],
        ["input", "-D", {"k": 1, "v": None}],
    ],
    "expected": [
        {"since_event": 0, "after_event": 0, "order": "exact", "emit": [["+I", 1, 12]]},
        {
            "since_event": 1,
            "after_event": 2,
            "order": "exact",
            "emit": [["-U", 1, 12], ["+U", 1, 15]],
        },
        {"since_event": 3, "after_event": 3, "order": "exact", "emit": [["-D", 1, 15]]},
    ],
}
LATENESS_CASE: dict[str, Any] = {
    "name": "interval_allowed_lateness",
    "operator": "interval",
    "config": {
        **{
            side: {"columns": [[f"{side}_t", "BIGINT"], [f"{side}_k", "STRING"]], "join_key": [key]}
            for side, key in (("left", "left_k"), ("right", "right_k"))
        },
        "output_columns": ["left_t", "left_k", "right_t", "right_k"],
        "join_type": "left",
        "time": "event",
        "left_time": "left_t",
        "right_time": "right_t",
        "lower_bound_ms": -5,
        "upper_bound_ms": 9,
        "allowed_lateness_ms": 3,
        "min_cleanup_interval_ms": 2,
    },
    "events": [
        ["left", "+I", {"left_t": 1, "left_k": "k"}],
        ["watermark_left", 11],
        ["watermark_right", 11],
        ["watermark_left", 12],
        ["watermark_right", 12],
    ],
    "expected": [
        {"since_event": 2, "after_event": 2, "order": "exact", "emit": [["watermark", -1]]},
        # 1 + 5 + 3 + 2 + 1
        {
            "since_event": 4,
            "after_event": 4,
            "order": "exact",
            "emit": [["+I", 1, "k", None, None], ["watermark", 0]],
        },
    ],
}


def write(folder: Path, *cases: dict[str, Any]) -> str:
    for case in cases:
        (folder / f"{case['name']}.json").write_text(json.dumps(case), encoding="utf-8")
    return str(folder)


def test_cases_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([write(tmp_path, SQL_CASE, OPERATOR_CASE)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["passed  keep_last", "passed  left_by_name", "2 passed, 0 failed, 0 skipped"]


def test_allowed_lateness_holds_rows_and_watermark(tmp_path: Path) -> None:
    """The minimum cleanup interval holds the rows alone."""
    assert main([write(tmp_path, LATENESS_CASE)]) == 0
    config = {**LATENESS_CASE["config"], "allowed_lateness_ms": 0}
    assert main([write(tmp_path, {**LATENESS_CASE, "config": config})]) == 1


def test_a_wrong_result_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong_rows = {**SQL_CASE, "expected_final": [[2, "z", "two"], [1, "x", None]]}
    wrong_kind = {**OPERATOR_CASE, "expected": OPERATOR_CASE["expected"][:2]}
    assert main([write(tmp_path, wrong_rows, wrong_kind)]) == 1
    told = capsys.readouterr().out
    assert "FAILED  left_by_name: one batch: missing: (1, x, NULL)" in told
    assert "FAILED  keep_last: events 3..3" in told
    assert told.endswith("0 passed, 2 failed, 0 skipped\n")


def test_only_what_may_be_lacking_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT a, b, d FROM l LEFT JOIN r ON a = c ORDER BY a"
    lacking = {**SQL_CASE, "query": query, "requires": ["distinct-subquery"]}
    assert main([write(tmp_path, lacking)]) == 0
    assert "skipped left_by_name: distinct-subquery: not supported" in capsys.readouterr().out
    assert main([write(tmp_path, {**lacking, "requires": ["row-type"]})]) == 1


def test_sql_that_is_refused_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {**SQL_CASE, "query": "SELECT a, b, nothing FROM l LEFT JOIN r ON a = c"}
    assert main([write(tmp_path, wrong)]) == 1
    assert "nothing" in capsys.readouterr().out


def test_tables_declare_what_the_case_says() -> None:
    watermark = {"column": "t", "delay_ms": 172_800_000}
    table = {
        "columns": [["k", "INT"], ["t", "TIMESTAMP(3)"]],
        "unique_key": ["k"],
        "watermark": watermark,
        "changelog": "retract",
        "rows": [["+I", 1, "2020-01-01T00:00:00.000"]],
    }
    text = job_text({**SQL_CASE, "tables": {"l": table}})
    assert "WATERMARK FOR `t` AS `t` - INTERVAL '2' DAY" in text
    assert "PRIMARY KEY (`k`) NOT ENFORCED" in text
    table["rows"] = [["+I", None, None]]
    assert "PRIMARY KEY (`k`)" not in job_text({**SQL_CASE, "tables": {"l": table}})
