"""Tables of `rejoin state` as a person reads them."""

from typing import Any

from spark_jobs.state.values import named
from spark_jobs.state.views import largest_table, rows_text, sizes_table

JOIN: dict[str, Any] = {
    "query": "q", "operator": "regular-join", "kind": "RegularJoin(joinType=[left])", "epoch": 7,
}  # fmt: skip


def test_rows_of_a_key_on_both_sides() -> None:
    left = {
        "side": "left",
        "rows": 5,
        "kept": [
            {"row": {"id": 1, "note": "a"}, "copies": 2},
            {"row": {"id": 22, "note": None}, "copies": 1},
        ],
    }
    right = {"side": "right", "rows": 0, "kept": [{"row": None, "deleted": True}]}
    found = {**JOIN, "key": {"k": 3}, "group": 9, "partition": 1, "sides": [left, right]}
    empty = {**found, "operator": "normalize", "sides": [{"side": "input", "rows": 0, "kept": []}]}
    assert rows_text([found, empty]).split("\n") == [
        "q/regular-join  RegularJoin(joinType=[left])",
        "  key k = 3, key group 9 in partition 1, epoch 7",
        "  left: 5 rows",
        "    id  note  (copies)",
        "    1   a     2",
        "    22  NULL  1",
        "    ... and 2 more: --limit",
        "  right: 0 rows",
        "    (deleted)",
        "    true",
        "",
        "no rows of this key in q/normalize",
    ]


def test_sizes_and_largest_keys() -> None:
    size = {**JOIN, "rows": {"left": 1200, "right": 3}, "keys": 7, "bytes": 65536}
    lines = sizes_table([{**size, "key_groups": 128, "state_format": 1}]).split("\n")
    assert [line.split() for line in lines[1:]] == [
        ["q", "regular-join", "RegularJoin(joinType=[left])", "left",
         "1,200", "7", "65,536", "7", "128", "1"],
        ["right", "3"],
    ]  # fmt: skip
    top = {**JOIN, "side": "left", "key": {"a": "x y", "b": None}, "rows": 1200}
    assert largest_table([top]).split("\n") == [
        "query  operator      side  key                 rows  oldest  newest  epoch",
        "q      regular-join  left  a = x y, b = NULL  1,200  -       -           7",
    ]


def test_values_say_what_their_types_hide() -> None:
    struct = {
        "fields": [
            {"name": "at", "type": "timestamp"},
            {"name": "in", "type": {"type": "struct", "fields": [
                {"name": "t", "type": "integer", "metadata": {"sqlType": "TIME(3)"}}]}},
            {"name": "all", "type": {"type": "array", "elementType": "timestamp"}},
            {"name": "none", "type": "timestamp"},
        ]
    }  # fmt: skip
    at = "2024-01-01T00:00:00.000"
    assert named([at, [3_723_004], [at], None], struct) == {
        "at": at + "Z", "in": {"t": "01:02:03.004"}, "all": [at + "Z"], "none": None,
    }  # fmt: skip
