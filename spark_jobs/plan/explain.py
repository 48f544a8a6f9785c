"""The text and the JSON of plans that people read; goldens in tests/plans hold it stable.

First the query as Flink prints it (logical, optimised, physical), then what rejoin runs: changelog
modes, unique keys, state layout, how long state is kept, delivery, warnings.
"""

from collections.abc import Sequence

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.flink_text import (
    Tree,
    draw,
    flink_logical_tree,
    flink_physical_tree,
    logical_tree,
)
from spark_jobs.plan.logical import Logical
from spark_jobs.plan.physical import (
    Json,
    KafkaScan,
    KafkaSink,
    Named,
    Normalize,
    Physical,
    Project,
    QueryPlan,
    ReadFrom,
    RegularJoin,
    Rekey,
    Side,
    TemporalJoin,
    inputs_of,
    to_json,
)
from spark_jobs.plan.planner import plan, plan_query
from spark_jobs.plan.rules import optimize
from spark_jobs.sql.binder import Job, bind, bind_query
from spark_jobs.sql.types import DataType

LAYOUTS = {
    "join-key-contains-unique-key": "one row per join key",
    "has-unique-key": "rows by unique key",
    "no-unique-key": "rows with their counts",
}

SECRET_WORDS = ("password", "secret", "token", "jaas", "user-info", "private")
MASK = "***"


def explain_text(text: str, source_name: str = "<sql>") -> str:
    """All queries of a job file, or the bare SELECT at its end.

    Raises:
        SqlErrors: the problems of the file.
    """
    try:
        job = bind(text, source_name)
    except SqlErrors as problems:
        if problems.codes != ("SELECT_WITHOUT_SINK",):
            raise
        return _explain_select(text, source_name)
    return explain_job(job, plan(job))


def _explain_select(text: str, source_name: str) -> str:
    bound = bind_query(text, source_name)
    try:
        planned = plan_query(bound.query, bound.settings)
    except SqlErrors as problems:
        for problem in problems.errors:
            problem.locate(text, source_name)
        raise
    return explain_query(bound.query, planned)


def explain_job(job: Job, plans: Sequence[QueryPlan]) -> str:
    """All queries of a job; `plans` are those of its INSERTs, in order."""
    texts = [explain_query(i, p) for i, p in zip(job.inserts, plans, strict=True)]
    if len(texts) == 1:
        return texts[0]
    titled = zip(plans, texts, strict=True)
    return "\n\n".join(f"== Query {plan.name} ==\n\n{text}" for plan, text in titled)


def explain_query(query: Logical, plan: QueryPlan) -> str:
    """One query, as bound, and its plan."""
    optimized = optimize(query)
    sections = [
        ("Logical Plan", draw(logical_tree(query))),
        ("Optimized Logical Plan", draw(flink_logical_tree(optimized))),
        ("Optimized Physical Plan", draw(flink_physical_tree(optimized))),
        ("Rejoin Plan", draw(_tree(plan.root))),
    ]
    if plan.warnings:
        sections.append(("Warnings", [f"- {w}" for w in plan.warnings]))
    return "\n\n".join("\n".join([f"== {title} ==", *lines]) for title, lines in sections)


def plan_json(plans: Sequence[QueryPlan]) -> dict[str, Json]:
    """The plans for machines that show them; values that may be secret are masked."""
    queries: list[Json] = [
        {"name": p.name, "warnings": list(p.warnings), "plan": masked(to_json(p.root))}
        for p in plans
    ]
    return {"version": 1, "queries": queries}


def masked(value: Json) -> Json:
    """The JSON with the values of options that are called secrets hidden."""
    match value:
        case dict():
            return {k: MASK if _is_secret(k, v) else masked(v) for k, v in value.items()}
        case list():
            return [masked(v) for v in value]
        case _:
            return value


def _is_secret(name: str, value: Json) -> bool:
    """Whether an option's name says that its value is nobody's business."""
    is_option = "." in name or "-" in name
    return is_option and isinstance(value, str) and any(w in name.lower() for w in SECRET_WORDS)


def _tree(node: Physical) -> Tree:
    text, details = _described(node)
    return Tree(text, tuple(_tree(i) for i in inputs_of(node)), tuple(details))


def _described(node: Physical) -> tuple[str, list[str]]:
    match node:
        case KafkaSink():
            return f"KafkaSink(table=[{node.table}], topic=[{node.topic}])", _sink(node)
        case Project():
            return f"Project(select=[{_select(node.select)}])", _facts(node)
        case RegularJoin():
            return f"RegularJoin(joinType=[{node.join_type}])", _regular_join(node)
        case TemporalJoin():
            return f"TemporalJoin(joinType=[{node.join_type}])", _temporal_join(node)
        case Normalize():
            key = ", ".join(node.schema.fields[i].name for i in node.key)
            details = [
                f"state: one row per primary key, {_row(node.schema)}",
                "retention: for ever",
            ]
            return f"Normalize(key=[{key}])", [*_facts(node), *details]
        case Rekey():
            return f"Rekey(key=[{', '.join(node.key)}])", [
                *_facts(node),
                f"row: {_row(node.schema)}",
            ]
        case KafkaScan():
            topics = ", ".join(t.name for t in node.topics)
            return f"KafkaScan(table=[{node.table}], topics=[{topics}])", _scan(node)


def _facts(node: Project | RegularJoin | TemporalJoin | Normalize | Rekey | KafkaScan) -> list[str]:
    keys = ", ".join(f"({', '.join(key)})" for key in node.unique_keys) or "none"
    return [f"changelog mode: [{node.changelog_mode}]", f"unique keys: {keys}"]


def _sink(node: KafkaSink) -> list[str]:
    keys = (
        f"key {node.key_format.name} ({', '.join(node.key_fields)})"
        if node.key_format
        else "no key"
    )
    modes = {
        "append": "append",
        "upsert": "upsert, a deletion is a tombstone",
        "retract": "retract, all row kinds",
    }
    details = [
        f"mode: {modes[node.mode]}",
        f"records: {keys}, value {node.value_format.name}",
        f"delivery: {node.guarantee}",
    ]
    if node.exchange:
        details.append(
            "exchange: by sink key, deletions first (a row may come from several join keys)"
        )
    return details


def _regular_join(node: RegularJoin) -> list[str]:
    return [
        *_facts(node),
        *_conditions(node),
        f"left state: {_layout(node.left)}",
        f"right state: {_layout(node.right)}",
        "retention: for ever",
    ]


def _temporal_join(node: TemporalJoin) -> list[str]:
    idle = f", idle after {node.idle_timeout_ms} ms" if node.idle_timeout_ms else ""
    return [
        *_facts(node),
        *_conditions(node),
        f"left state: rows until the watermark reaches them, {_row(node.left.schema)}",
        f"right state: versions by time, {_row(node.right.schema)}",
        "retention: the newest version at or below the watermark and all later ones",
        f"watermark: {node.watermark_policy} of both inputs{idle}",
        "late rows: left dropped and counted, right accepted",
    ]


def _conditions(node: RegularJoin | TemporalJoin) -> list[str]:
    left, right = node.inputs
    pairs = zip(left.key, right.key, node.filter_nulls, strict=True)
    signs = [f"{a} {'=' if strict else 'IS NOT DISTINCT FROM'} {b}" for a, b, strict in pairs]
    groups = f"by join key, {left.groups} key groups" if signs else "all rows to one key group"
    details = [f"join key: {' AND '.join(signs) or 'none'}", f"exchange: {groups}"]
    if node.residual is not None:
        details.append(f"residual: {node.residual}")
    if node.where is not None:
        details.append(f"where: {node.where}")
    if node.pair_by is not None:
        details.append(f"updates paired by: {', '.join(node.pair_by)}")
    return details


def _layout(side: Side) -> str:
    text = LAYOUTS[side.layout]
    if side.unique_key:
        text += f" ({', '.join(side.schema.fields[i].name for i in side.unique_key)})"
    return (
        f"{side.layout}: {text}, {_row(side.schema)}{', normalises upserts' if side.upsert else ''}"
    )


def _scan(node: KafkaScan) -> list[str]:
    key = f", key {node.key_format.name}" if node.key_format else ""
    columns = [
        f"{c.name}{'' if c.origin == 'value' else f' FROM {c.origin} {c.field}'}"
        for c in node.columns
    ]
    details = [
        *_facts(node),
        f"records: {node.changelog}, value {node.value_format.name}{key}",
        f"reads: {', '.join(columns)}",
    ]
    if node.filter is not None:
        failed = ", a row that fails is a deletion" if node.changelog == "upsert" else ""
        details.append(f"filter: {node.filter}{failed}")
    if node.drop_null_keys:
        details.append("NULL keys: dropped")
    if node.rowtime is not None:
        details.append(f"event time: {node.rowtime}, watermark {node.watermark}")
    details.append(f"row: {_row(node.schema)}")
    details.append(f"bad records: {_policy(node)}")
    details.append(f"starts: {_place(node.startup)}, ends: {_place(node.bounded)}")
    return details


def _policy(node: KafkaScan) -> str:
    return f"to topic {node.dead_letter_topic}" if node.on_error == "dead-letter" else node.on_error


def _place(place: ReadFrom) -> str:
    if place.timestamp_ms is not None:
        return f"timestamp {place.timestamp_ms}"
    if place.offsets is not None:
        return "offsets " + ", ".join(f"{p}:{o}" for p, o in sorted(place.offsets.items()))
    return place.mode


def _select(select: Sequence[Named]) -> str:
    return ", ".join(n.expr if n.expr == f"`{n.name}`" else f"{n.expr} AS {n.name}" for n in select)


def _row(schema: DataType) -> str:
    return "(" + ", ".join(f"{f.name} {f.type.sql()}" for f in schema.fields) + ")"
