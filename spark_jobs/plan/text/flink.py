"""Plans as Flink prints them: the logical plan, and both stages of the optimised one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from spark_jobs.plan.facts.bounds import Interval
from spark_jobs.plan.facts.changelog import INSERT, changelog_of
from spark_jobs.plan.facts.facts import as_of_time, facts
from spark_jobs.plan.facts.keys import EquiKey, smallest
from spark_jobs.plan.facts.lookups import key_places, looked_up, lookup_condition
from spark_jobs.plan.facts.sources import Source, sources
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.plan.strategy.join_sides import input_spec
from spark_jobs.plan.text.flink_expr import (
    by_name,
    by_position,
    call_text,
    expr_text,
    field_names,
    joined_names,
)
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Logical,
    NoRows,
    Project,
    Rank,
    RowNumber,
    Scan,
    Sink,
    SortKey,
    Union,
    Unnest,
)
from spark_jobs.sql.types.expr import Call, Column

JOIN_TYPES = {
    "inner": "InnerJoin",
    "left": "LeftOuterJoin",
    "right": "RightOuterJoin",
    "full": "FullOuterJoin",
    "semi": "LeftSemiJoin",
    "anti": "LeftAntiJoin",
}

INPUT_SPECS = {
    "join-key-contains-unique-key": "JoinKeyContainsUniqueKey",
    "has-unique-key": "HasUniqueKey",
    "no-unique-key": "NoUniqueKey",
}

_NO_TUPLES = "tuples=[[]]"
KEEPS = {"first": "FirstRow", "last": "LastRow"}


@dataclass(frozen=True, slots=True)
class Tree:
    """A node as text; `details` are lines of their own below it."""

    text: str
    inputs: tuple["Tree", ...] = ()
    details: tuple[str, ...] = ()


def draw(tree: Tree) -> list[str]:
    """The tree as lines, in Flink's drawing.

    >>> draw(Tree("a", (Tree("b"), Tree("c"))))
    ['a', ':- b', '+- c']
    """
    lines = [tree.text]
    lines += [(":  " if tree.inputs else "   ") + d for d in tree.details]
    for input_ in tree.inputs:
        is_last = input_ is tree.inputs[-1]
        head, rest = ("+- ", "   ") if is_last else (":- ", ":  ")
        first, *others = draw(input_)
        lines += [head + first, *(rest + line for line in others)]
    return lines


def logical_tree(node: Logical) -> Tree:
    """The query as bound, before any rule."""
    match node:
        case Sink(input=inner):
            return Tree(f"LogicalSink({_sink(node)})", (logical_tree(inner),))
        case Project(input=inner, exprs=exprs, fields=fields):
            items = [
                f"{f.name}=[{expr_text(e, by_position)}]"
                for f, e in zip(fields, exprs, strict=True)
            ]
            return Tree(f"LogicalProject({', '.join(items)})", (logical_tree(inner),))
        case Filter(input=inner, condition=condition):
            text = expr_text(condition, by_position)
            return Tree(f"LogicalFilter(condition=[{text}])", (logical_tree(inner),))
        case Join():
            return _logical_join(node, "Logical", logical_tree)
        case Union(inputs=inputs):
            return Tree("LogicalUnion(all=[true])", tuple(map(logical_tree, inputs)))
        case RowNumber() | Rank():
            text = (
                f"Sort({_top_n(node)})" if isinstance(node, Rank) else f"Project({_numbered(node)})"
            )
            return Tree(f"Logical{text}", (logical_tree(node.input),))
        case Deduplicate():
            key = ", ".join(f"${i}" for i in node.partition)
            text = f"LogicalTemporalTable(key=[{key}], time=[${node.order}])"
            return Tree(text, (logical_tree(node.input),))
        case Aggregate() | Unnest():
            return Tree(f"Logical{_grouped_or_spread(node)}", (logical_tree(node.input),))
        case Scan() | NoRows():
            return _logical_leaf(node)
        case _:
            assert_never(node)


def _logical_leaf(node: Scan | NoRows) -> Tree:
    if isinstance(node, NoRows):
        return Tree(f"LogicalValues({_NO_TUPLES})")
    table = node.table
    scan = Tree(f"LogicalTableScan({_source_text(table)})")
    if table.watermark is None:
        return scan
    mark = expr_text(table.watermark.expr, by_position)
    text = f"rowtime=[{table.watermark.column}], watermark=[{mark}]"
    return Tree(f"LogicalWatermarkAssigner({text})", (scan,))


def flink_logical_tree(node: Logical) -> Tree:
    """The optimised query, still without exchanges."""
    below = flink_logical_tree
    match node:
        case Sink(input=inner):
            return Tree(f"FlinkLogicalSink({_sink(node)})", (below(inner),))
        case Project() | Filter():
            return _calc(node, "FlinkLogicalCalc", below)
        case Join():
            return _logical_join(node, "FlinkLogical", below)
        case Union(inputs=inputs):
            return Tree("FlinkLogicalUnion(all=[true])", tuple(map(below, inputs)))
        case Rank():
            return Tree(f"FlinkLogicalRank({_top_n(node)})", (below(node.input),))
        case Deduplicate():
            return Tree(f"FlinkLogicalRank({_rank(node)})", (below(node.input),))
        case RowNumber():
            return Tree(f"FlinkLogicalOverAggregate({_numbered(node)})", (below(node.input),))
        case Aggregate() | Unnest():
            return Tree(f"FlinkLogical{_grouped_or_spread(node)}", (below(node.input),))
        case Scan() | NoRows():
            return _leaf(node, "FlinkLogical")
        case _:
            assert_never(node)


def flink_physical_tree(node: Logical) -> Tree:
    """The optimised query as Flink's stream nodes."""
    match node:
        case Sink(input=inner):
            return Tree(f"Sink({_sink(node)})", (flink_physical_tree(inner),))
        case Project() | Filter():
            return _calc(node, "Calc", flink_physical_tree)
        case Join():
            return _physical_join(node)
        case Union(inputs=inputs):
            fields = ", ".join(field_names(node))
            return Tree(f"Union(all=[true], union=[{fields}])", tuple(map(_complete, inputs)))
        case Deduplicate(input=inner, partition=partition):
            names = field_names(inner)
            below = _exchange(_complete(inner), [names[i] for i in partition])
            order = (facts(node).times[node.order] or "").upper()
            key = ", ".join(names[i] for i in partition)
            items = f"keep=[{KEEPS[node.keep]}], key=[{key}], order=[{order}]"
            return Tree(f"Deduplicate({items})", (below,))
        case Rank(input=inner, partition=partition):
            strategy = "AppendFast" if facts(inner).kinds == INSERT else "Retract"
            by = [field_names(inner)[i] for i in partition]
            items = f"strategy=[{strategy}Strategy], {_top_n(node)}"
            return Tree(f"Rank({items})", (_exchange(_complete(inner), by),))
        case Aggregate():
            return _physical_aggregate(node)
        case RowNumber() | Unnest():
            return Tree(_over_or_spread(node), (_complete(node.input),))
        case Scan() | NoRows():
            return _leaf(node, "")
        case _:
            assert_never(node)


def _leaf(node: Scan | NoRows, prefix: str) -> Tree:
    if isinstance(node, NoRows):
        return Tree(f"{prefix}Values({_NO_TUPLES})")
    return Tree(f"{prefix}TableSourceScan({_source_text(node.table)}, {_fields(node)})")


def _logical_join(join: Join, prefix: str, below: Callable[[Logical], Tree]) -> Tree:
    versions = below(join.right)
    if join.as_of is not None:
        period = expr_text(join.as_of, by_position)
        versions = Tree(f"{prefix}Snapshot(period=[{period}])", (versions,))
    if join.snapshot is not None:
        at = "now" if join.snapshot.at_ms is None else str(join.snapshot.at_ms)
        versions = Tree(f"{prefix}TableFunctionScan(invocation=[SNAPSHOT({at})])", (versions,))
    condition = expr_text(join.condition, by_position) if join.condition else "true"
    text = f"condition=[{condition}], joinType=[{join.kind}]"
    return Tree(f"{prefix}Join({text})", (below(join.left), versions))


def _lookup_join(join: Join, table: Source) -> Tree:
    """As Flink writes it: the database is no input, the conditions name what it is asked for."""
    names = joined_names(join)
    refer, stored = by_name(names), by_name([c.name for c in table.table.columns])
    condition = lookup_condition(join, table)
    columns = (table.table.columns[i].name for i in key_places(condition, table))
    asked = zip(columns, (expr_text(k.left, refer) for k in condition.keys), strict=True)
    items = [
        f"table=[{table.table.name}]",
        f"joinType=[{JOIN_TYPES[join.kind]}]",
        f"lookup=[{', '.join(f'{name}={value}' for name, value in asked)}]",
    ]
    rest = [] if table.filter is None else [expr_text(table.filter, stored)]
    rest += [expr_text(e, refer) for e in condition.residual]
    items += [f"where=[{', '.join(rest)}]"] if rest else []
    items.append(f"select=[{', '.join(names[: len(join.fields)])}]")
    return Tree(f"LookupJoin({', '.join(items)})", (_complete(join.left),))


def _physical_join(join: Join) -> Tree:
    if (table := looked_up(join)) is not None:
        return _lookup_join(join, table)
    names = joined_names(join)
    interval = facts(join).interval
    items = [f"joinType=[{JOIN_TYPES[join.kind]}]"]
    if interval is not None:
        items.append(f"windowBounds=[{_bounds(interval)}]")
    where = expr_text(join.condition, by_name(names)) if join.condition else "true"
    if join.as_of is not None:
        where = _temporal_where(join, names)
    items += [f"where=[{where}]", f"select=[{', '.join(names[: len(join.fields)])}]"]
    condition = facts(join).condition if interval is None else interval.condition
    kind = "IntervalJoin"
    if is_versioned(join):
        kind = "TemporalJoin" if join.snapshot is None else "LateralSnapshotJoin"
    elif interval is None:
        kind = "Join"
        for side, input_ in (("left", join.left), ("right", join.right)):
            spec, _ = input_spec(facts(input_).unique_keys, condition.columns_of(side == "right"))
            items.append(f"{side}InputSpec=[{INPUT_SPECS[spec]}]")
    inputs = (_join_input(join, condition.keys, side) for side in (0, 1))
    return Tree(f"{kind}({', '.join(items)})", tuple(inputs))


def _bounds(interval: Interval) -> str:
    is_row_time = "true" if interval.time == "rowtime" else "false"
    return (
        f"isRowTime={is_row_time}, leftLowerBound={interval.lower_ms},"
        f" leftUpperBound={interval.upper_ms}, leftTimeIndex={interval.left},"
        f" rightTimeIndex={interval.right}"
    )


def _join_input(join: Join, keys: Sequence[EquiKey], side: int) -> Tree:
    """The input under its exchange; upserts are normalised if the join holds no old rows."""
    input_ = join.left if side == 0 else join.right
    exprs = [k.left if side == 0 else k.right for k in keys]
    read = facts(join).condition.columns_read(side)
    holds = any(read <= key for key in facts(input_).unique_keys)
    if holds and facts(join).interval is None and not (is_versioned(join) and side == 0):
        tree = flink_physical_tree(input_)
    else:
        tree = _complete(input_)
    return _exchange(tree, [expr_text(e, by_name(field_names(input_))) for e in exprs])


def _complete(node: Logical) -> Tree:
    """The node's changelog with old rows, which upsert tables do not send."""
    tree = flink_physical_tree(node)
    if changelog_of(node) != "upsert":
        return tree
    primary_key = next(sources(node)).table.primary_key
    normalised = f"ChangelogNormalize(key=[{', '.join(primary_key)}])"
    return Tree(normalised, (_exchange(tree, primary_key),))


def _exchange(tree: Tree, key: Sequence[str]) -> Tree:
    distribution = f"hash[{', '.join(key)}]" if key else "single"
    return Tree(f"Exchange(distribution=[{distribution}])", (tree,))


def _temporal_where(join: Join, names: Sequence[str]) -> str:
    """Flink writes the lookup of the version as a call among the conditions."""
    width = len(join.left.fields)
    refer = by_name(names)
    condition = facts(join).condition
    key = smallest(facts(join.right).unique_keys) or frozenset()
    time = facts(join.right).version_time if as_of_time(join) == "rowtime" else None
    as_of = expr_text(join.as_of, refer) if join.as_of else ""
    left_key = ", ".join(expr_text(k.left, refer) for k in condition.keys)
    lookup = ", ".join(
        [
            as_of,
            *(() if time is None else (names[width + time],)),
            f"__TEMPORAL_JOIN_CONDITION_PRIMARY_KEY({_at(names, width, sorted(key))})",
            f"__TEMPORAL_JOIN_LEFT_KEY({left_key})",
            f"__TEMPORAL_JOIN_RIGHT_KEY({_at(names, width, sorted(condition.columns_of(1)))})",
        ]
    )
    parts = [expr_text(join.condition, refer)] if join.condition else []
    if isinstance(join.condition, Call) and join.condition.op == "AND":
        parts = [expr_text(a, refer) for a in join.condition.args]
    return f"AND({', '.join([*parts, f'__TEMPORAL_JOIN_CONDITION({lookup})'])})"


def _at(names: Sequence[str], width: int, positions: Sequence[int]) -> str:
    return ", ".join(names[width + i] for i in positions)


def _physical_aggregate(node: Aggregate) -> Tree:
    names = field_names(node.input)
    refer = by_name(names)
    keys = [expr_text(k, refer) for k in node.keys]
    retract = facts(node.input).kinds != INSERT
    calls = [call_text(c, refer, retract=retract).replace("()", "(*)") for c in node.calls]
    select = _named([*keys, *calls], node)
    items = [f"groupBy=[{', '.join(keys)}]"] if keys else []
    items.append(f"select=[{', '.join(select)}]")
    below = _exchange(_complete(node.input), keys)
    return Tree(f"GroupAggregate({', '.join(items)})", (below,))


def _groups(node: Aggregate) -> str:
    keys = [str(k.index) if isinstance(k, Column) else expr_text(k, by_position) for k in node.keys]
    calls = [call_text(c, by_position) for c in node.calls]
    named = zip(node.fields[len(keys) :], calls, strict=True)
    return ", ".join([f"group=[{{{', '.join(keys)}}}]", *(f"{f.name}=[{c}]" for f, c in named)])


def _numbered(node: RowNumber) -> str:
    order = ", ".join(
        f"${key.column}{' DESC' if key.descends else ''} NULLS {_nulls(key)}" for key in node.order
    )
    by = ", ".join(f"${i}" for i in node.partition)
    parts = [f"PARTITION BY {by}"] if by else []
    over = " ".join([*parts, f"ORDER BY {order}"])
    kept = [f"{f.name}=[${i}]" for i, f in enumerate(node.input.fields)]
    return ", ".join([*kept, f"{node.fields[-1].name}=[ROW_NUMBER() OVER ({over})]"])


def _nulls(key: SortKey) -> str:
    return "FIRST" if key.nulls_first else "LAST"


def _grouped_or_spread(node: Aggregate | Unnest) -> str:
    return f"Aggregate({_groups(node)})" if isinstance(node, Aggregate) else _unnested(node)


def _over_or_spread(node: RowNumber | Unnest) -> str:
    return f"OverAggregate({_numbered(node)})" if isinstance(node, RowNumber) else _unnested(node)


def _unnested(node: Unnest) -> str:
    refer = by_name(field_names(node))
    items = [f"invocation=[UNNEST({expr_text(node.collection, refer)})]"]
    if node.condition is not None:
        items.append(f"condition=[{expr_text(node.condition, refer)}]")
    items.append(f"select=[{', '.join(field_names(node))}]")
    return f"Correlate({', '.join(items)}, joinType=[{node.kind.upper()}])"


def _top_n(node: Rank) -> str:
    names = field_names(node)
    items = [
        "rankType=[ROW_NUMBER]",
        f"rankRange=[rankStart={node.first}, rankEnd={node.last}]",
        f"partitionBy=[{', '.join(names[i] for i in node.partition)}]",
        f"orderBy=[{', '.join(_ordered(names[k.column], k) for k in node.order)}]",
        f"select=[{', '.join(names)}]",
    ]
    return ", ".join(items)


def _ordered(name: str, key: SortKey) -> str:
    """NULLs are the smallest values, unless the query says otherwise."""
    usual = key.nulls_first != key.descends
    return f"{name} {'DESC' if key.descends else 'ASC'}" + (
        "" if usual else f" NULLS {_nulls(key)}"
    )


def _rank(node: Deduplicate) -> str:
    names = field_names(node)
    order = f"{names[node.order]} {'DESC' if node.keep == 'last' else 'ASC'}"
    by = ", ".join(names[i] for i in node.partition)
    return (
        "rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=1],"
        f" partitionBy=[{by}], orderBy=[{order}], select=[{', '.join(names)}]"
    )


def _calc(node: Project | Filter, name: str, below: Callable[[Logical], Tree]) -> Tree:
    """Flink's Calc: a projection and the filter under it in one."""
    filter_ = node.input if isinstance(node, Project) else node
    inner = filter_.input if isinstance(filter_, Filter) else node.input
    names = field_names(inner)
    where = ""
    if isinstance(filter_, Filter):
        where = f", where=[{expr_text(filter_.condition, by_name(names))}]"
    select = list(names)
    if isinstance(node, Project):
        select = _named([expr_text(e, by_name(names)) for e in node.exprs], node)
    if not where and select == list(names):
        return below(inner)
    return Tree(f"{name}(select=[{', '.join(select)}]{where})", (below(inner),))


def _named(texts: Sequence[str], node: Project | Aggregate) -> list[str]:
    """What makes each field, with its name where the text is another."""
    pairs = zip(texts, node.fields, strict=True)
    return [text if text == field.name else f"{text} AS {field.name}" for text, field in pairs]


def _sink(sink: Sink) -> str:
    return f"table=[[{sink.table.name}]], {_fields(sink)}"


def _fields(node: Scan | Sink) -> str:
    return f"fields=[{', '.join(f.name for f in node.fields)}]"


def _source_text(table: Table) -> str:
    """The table and, in Flink's way, the class of its source: here its connector."""
    kind = "".join(part.capitalize() for part in table.connector.split("-"))
    names = ", ".join(c.name for c in table.columns)
    return f"table=[[{table.name}, source: [{kind}TableSource({names})]]]"
