"""Answers about state as tables for people."""

from collections.abc import Mapping, Sequence

from spark_jobs.plan.nodes.plan_json import Json
from spark_jobs.state.values import Told, cell_text
from spark_jobs.terminal import aligned

_KIND_SHOWN = 40


def sizes_table(told: Sequence[Told]) -> str:
    heads = ["query", "operator", "kind", "side", "rows", "keys", "bytes", "epoch", "key groups"]
    rows = [[*heads, "state format"]]
    for of in told:
        names = [of["query"], of["operator"], cell_text(of["kind"], _KIND_SHOWN)]
        totals = [f"{of['keys']:,}", f"{of['bytes']:,}", str(of["epoch"]), str(of["key_groups"])]
        totals.append(str(of["state_format"]))
        for side, count in of["rows"].items():
            rows.append([*names, side, f"{count:,}", *totals])
            names, totals = [""] * len(names), [""] * len(totals)
    return "\n".join(aligned(rows, frozenset({4, 5, 6, 7, 8, 9})))


def largest_table(told: Sequence[Told]) -> str:
    rows = [["query", "operator", "side", "key", "rows", "oldest", "newest", "epoch"]]
    for of in told:
        times = [of.get("oldest", "-"), of.get("newest", "-")]
        names = [of["query"], of["operator"], of["side"], _key_text(of["key"])]
        rows.append([*names, f"{of['rows']:,}", *times, str(of["epoch"])])
    return "\n".join(aligned(rows, frozenset({4, 7})))


def rows_text(told: Sequence[Told]) -> str:
    """The rows of a key, operator by operator; those that keep nothing of it in one line."""
    kept = [of for of in told if any(side["rows"] or side["kept"] for side in of["sides"])]
    without = ", ".join(f"{of['query']}/{of['operator']}" for of in told if of not in kept)
    rest = [f"nothing is kept of this key in {without}"] if without else []
    return "\n\n".join([*map(_operator_text, kept), *rest])


def _operator_text(told: Told) -> str:
    """A table per side."""
    key = _key_text(told["key"])
    lines = [
        f"{told['query']}/{told['operator']}  {told['kind']}",
        f"  key {key}, key group {told['group']} in partition {told['partition']}, "
        f"epoch {told['epoch']}",
    ]
    for of in told["sides"]:
        count = of["rows"]
        lines.append(f"  {of['side']}: {count:,} row{'' if count == 1 else 's'}")
        if of["kept"]:
            lines += ["    " + line for line in _rows_table(of["kept"])]
        if left := count - sum(row.get("copies", 1) for row in of["kept"]):
            lines += [f"    ... and {left:,} more: --limit"] if left > 0 else []
    return "\n".join(lines)


def _rows_table(kept: Sequence[Told]) -> list[str]:
    columns = list(dict.fromkeys(name for row in kept for name in row["row"] or ()))
    facts = list(dict.fromkeys(name for row in kept for name in row if name != "row"))
    rows = [[*columns, *(f"({name})" for name in facts)]]
    for row in kept:
        values = ["-" if row["row"] is None else cell_text(row["row"][name]) for name in columns]
        rows.append([*values, *(cell_text(row[n]) if n in row else "-" for n in facts)])
    return aligned(rows)


def _key_text(key: Mapping[str, Json]) -> str:
    return ", ".join(f"{name} = {cell_text(value)}" for name, value in key.items()) or "(none)"
