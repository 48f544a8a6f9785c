"""The JSON objects of `rejoin state` as tables."""

from collections.abc import Mapping, Sequence

from spark_jobs.plan.nodes.plan_json import Json
from spark_jobs.state.values import JsonObject, cell_text
from spark_jobs.terminal import aligned

_KIND_SHOWN = 40


def sizes_table(objects: Sequence[JsonObject]) -> str:
    heads = ["query", "operator", "kind", "side", "rows", "keys", "bytes", "epoch", "key groups"]
    rows = [[*heads, "state format"]]
    for item in objects:
        names = [item["query"], item["operator"], cell_text(item["kind"], _KIND_SHOWN)]
        totals = [
            f"{item['keys']:,}",
            f"{item['bytes']:,}",
            str(item["epoch"]),
            str(item["key_groups"]),
        ]
        totals.append(str(item["state_format"]))
        for side, count in item["rows"].items():
            rows.append([*names, side, f"{count:,}", *totals])
            names, totals = [""] * len(names), [""] * len(totals)
    return "\n".join(aligned(rows, frozenset({4, 5, 6, 7, 8, 9})))


def largest_table(objects: Sequence[JsonObject]) -> str:
    rows = [["query", "operator", "side", "key", "rows", "oldest", "newest", "epoch"]]
    for item in objects:
        times = [item.get("oldest", "-"), item.get("newest", "-")]
        names = [item["query"], item["operator"], item["side"], _key_text(item["key"])]
        rows.append([*names, f"{item['rows']:,}", *times, str(item["epoch"])])
    return "\n".join(aligned(rows, frozenset({4, 7})))


def rows_text(objects: Sequence[JsonObject]) -> str:
    """The rows of a key by operator; operators without rows of it share the last line."""
    kept = [item for item in objects if any(side["rows"] or side["kept"] for side in item["sides"])]
    without = ", ".join(
        f"{item['query']}/{item['operator']}" for item in objects if item not in kept
    )
    rest = [f"no rows of this key in {without}"] if without else []
    return "\n\n".join([*map(_operator_text, kept), *rest])


def _operator_text(operator: JsonObject) -> str:
    key = _key_text(operator["key"])
    lines = [
        f"{operator['query']}/{operator['operator']}  {operator['kind']}",
        f"  key {key}, key group {operator['group']} in partition {operator['partition']}, "
        f"epoch {operator['epoch']}",
    ]
    for item in operator["sides"]:
        count = item["rows"]
        lines.append(f"  {item['side']}: {count:,} row{'' if count == 1 else 's'}")
        if item["kept"]:
            lines += ["    " + line for line in _rows_table(item["kept"])]
        if left := count - sum(row.get("copies", 1) for row in item["kept"]):
            lines += [f"    ... and {left:,} more: --limit"] if left > 0 else []
    return "\n".join(lines)


def _rows_table(kept: Sequence[JsonObject]) -> list[str]:
    columns = list(dict.fromkeys(name for row in kept for name in row["row"] or ()))
    facts = list(dict.fromkeys(name for row in kept for name in row if name != "row"))
    rows = [[*columns, *(f"({name})" for name in facts)]]
    for row in kept:
        values = ["-" if row["row"] is None else cell_text(row["row"][name]) for name in columns]
        rows.append([*values, *(cell_text(row[n]) if n in row else "-" for n in facts)])
    return aligned(rows)


def _key_text(key: Mapping[str, Json]) -> str:
    return ", ".join(f"{name} = {cell_text(value)}" for name, value in key.items()) or "(none)"
