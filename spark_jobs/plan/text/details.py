"""What several kinds of physical nodes say of themselves: keys, rows, times, state."""

from spark_jobs.plan.nodes.parts import Output, Pair, Side
from spark_jobs.plan.nodes.physical import KafkaScan, Project, Rekey, Stateful
from spark_jobs.sql.types.data_types import DataType

LAYOUTS = {
    "join-key-contains-unique-key": "one row per join key",
    "has-unique-key": "rows by unique key",
    "no-unique-key": "rows with their counts",
}


def facts_text(node: Stateful | Project | Rekey | KafkaScan) -> list[str]:
    keys = ", ".join(f"({', '.join(key)})" for key in node.unique_keys) or "none"
    return [f"changelog mode: [{node.changelog_mode}]", f"unique keys: {keys}"]


def conditions_text(node: Stateful, pair: Pair) -> list[str]:
    left = next(i for i in node.inputs if i.side == 0)
    right = next(i for i in node.inputs if i.side == 1)
    pairs = zip(left.key, right.key, pair.filter_nulls, strict=True)
    signs = [f"{a} {'=' if strict else 'IS NOT DISTINCT FROM'} {b}" for a, b, strict in pairs]
    groups = f"by join key, {left.groups} key groups" if signs else "all rows to one key group"
    details = [f"join key: {' AND '.join(signs) or 'none'}", f"exchange: {groups}"]
    if pair.residual is not None:
        details.append(f"residual: {pair.residual}")
    return [*details, *output_text(node.output)]


def output_text(output: Output) -> list[str]:
    where = [] if output.where is None else [f"where: {output.where}"]
    pairs = [] if output.pair_by is None else [f"updates paired by: {', '.join(output.pair_by)}"]
    return where + pairs


def layout_text(side: Side) -> str:
    names = ", ".join(side.schema.fields[i].name for i in side.unique_key)
    text = f"{LAYOUTS[side.layout]} ({names})" if names else LAYOUTS[side.layout]
    upserts = ", normalises upserts" if side.upsert else ""
    return f"{side.layout}: {text}, {row_text(side.schema)}{upserts}"


def time_text(rowtime: str | None, watermark: str | None) -> list[str]:
    times = [] if rowtime is None else [f"event time: {rowtime}"]
    times += [] if watermark is None else [f"watermark {watermark}"]
    return [", ".join(times)] if times else []


def arrival_text(node: KafkaScan | Rekey) -> list[str]:
    return ["NULL keys: dropped"] if node.drop_null_keys else []


def row_text(schema: DataType) -> str:
    return "(" + ", ".join(f"{f.name} {f.type.sql()}" for f in schema.fields) + ")"
