"""Plans as Flink prints them: the logical plan, and both stages of the optimised one.

Expressions are in Calcite's prefix form, over positions (`$0`) or names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from spark_jobs.plan.joins import JoinSides, input_spec, join_sides, unique_names
from spark_jobs.plan.keys import smallest, split_condition, unique_keys
from spark_jobs.plan.logical import Filter, Join, Logical, Project, Scan, Sink
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.expr import Call, Column, Expr, FieldAccess, Literal
from spark_jobs.sql.types import DataType, with_nullable

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

Refer = Callable[[Column], str]


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
            fields = ", ".join(f.name for f in node.fields)
            return Tree(
                f"LogicalSink({table_text(node.table)}, fields=[{fields}])", (logical_tree(inner),)
            )
        case Project(input=inner, exprs=exprs, fields=fields_):
            items = [
                f"{f.name}=[{expr_text(e, _position)}]" for f, e in zip(fields_, exprs, strict=True)
            ]
            return Tree(f"LogicalProject({', '.join(items)})", (logical_tree(inner),))
        case Filter(input=inner, condition=condition):
            text = expr_text(condition, _position)
            return Tree(f"LogicalFilter(condition=[{text}])", (logical_tree(inner),))
        case Join(left=left, right=right):
            versions = logical_tree(right)
            if node.as_of is not None:
                period = expr_text(node.as_of, _position)
                versions = Tree(f"LogicalSnapshot(period=[{period}])", (versions,))
            return Tree(f"LogicalJoin({_join_text(node)})", (logical_tree(left), versions))
        case Scan(table=table):
            scan = Tree(f"LogicalTableScan({_source_text(table)})")
            if table.watermark is None:
                return scan
            mark = expr_text(table.watermark.expr, _position)
            text = f"rowtime=[{table.watermark.column}], watermark=[{mark}]"
            return Tree(f"LogicalWatermarkAssigner({text})", (scan,))
        case _:
            assert_never(node)


def flink_logical_tree(node: Logical) -> Tree:
    """The optimised query, still without exchanges."""
    match node:
        case Sink(input=inner):
            fields = ", ".join(f.name for f in node.fields)
            text = f"FlinkLogicalSink({table_text(node.table)}, fields=[{fields}])"
            return Tree(text, (flink_logical_tree(inner),))
        case Project() | Filter():
            return _calc(node, "FlinkLogicalCalc", flink_logical_tree)
        case Join(left=left, right=right):
            versions = flink_logical_tree(right)
            if node.as_of is not None:
                period = expr_text(node.as_of, _position)
                versions = Tree(f"FlinkLogicalSnapshot(period=[{period}])", (versions,))
            return Tree(
                f"FlinkLogicalJoin({_join_text(node)})", (flink_logical_tree(left), versions)
            )
        case Scan():
            return Tree(f"FlinkLogicalTableSourceScan({_source_text(node.table)}, {_fields(node)})")
        case _:
            assert_never(node)


def flink_physical_tree(node: Logical) -> Tree:
    """The optimised query as Flink's stream nodes."""
    match node:
        case Sink(input=inner):
            fields = ", ".join(f.name for f in node.fields)
            text = f"Sink({table_text(node.table)}, fields=[{fields}])"
            return Tree(text, (flink_physical_tree(inner),))
        case Project() | Filter():
            return _calc(node, "Calc", flink_physical_tree)
        case Join():
            return _physical_join(node)
        case Scan():
            return Tree(f"TableSourceScan({_source_text(node.table)}, {_fields(node)})")
        case _:
            assert_never(node)


def _physical_join(join: Join) -> Tree:
    names = field_names(join)
    kind = "Join" if join.as_of is None else "TemporalJoin"
    where = expr_text(join.condition, by_name(names)) if join.condition else "true"
    if join.as_of is not None:
        where = _temporal_where(join, names)
    items = [
        f"joinType=[{JOIN_TYPES[join.kind]}]",
        f"where=[{where}]",
        f"select=[{', '.join(names)}]",
    ]
    condition = split_condition(join)
    if join.as_of is None:
        for side, input_ in (("left", join.left), ("right", join.right)):
            spec, _ = input_spec(unique_keys(input_), condition.columns_of(side == "right"))
            items.append(f"{side}InputSpec=[{INPUT_SPECS[spec]}]")
    sides = join_sides(join, ())
    return Tree(
        f"{kind}({', '.join(items)})", (_exchange(sides, 0, join), _exchange(sides, 1, join))
    )


def _exchange(sides: JoinSides, side: int, join: Join) -> Tree:
    input_ = join.left if side == 0 else join.right
    facts = sides.left if side == 0 else sides.right
    tree = flink_physical_tree(input_)
    table = facts.source.table
    if table.changelog == "upsert" and not facts.upsert:
        key = ", ".join(table.primary_key)
        below = Tree(f"Exchange(distribution=[hash[{key}]])", (tree,))
        tree = Tree(f"ChangelogNormalize(key=[{key}])", (below,))
    keys = [expr_text(e, by_name(field_names(input_))) for e in facts.keys]
    distribution = f"hash[{', '.join(keys)}]" if keys else "single"
    return Tree(f"Exchange(distribution=[{distribution}])", (tree,))


def _temporal_where(join: Join, names: Sequence[str]) -> str:
    """Flink writes the lookup of the version as a call among the conditions."""
    width = len(join.left.fields)
    refer = by_name(names)
    condition = split_condition(join)
    key = smallest(unique_keys(join.right)) or frozenset()
    time = next((i for i, f in enumerate(join.right.fields) if f.time == "rowtime"), 0)
    as_of = expr_text(join.as_of, refer) if join.as_of else ""
    left_key = ", ".join(expr_text(k.left, refer) for k in condition.keys)
    lookup = ", ".join(
        [
            as_of,
            names[width + time],
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


def _calc(node: Project | Filter, name: str, below: Callable[[Logical], Tree]) -> Tree:
    """Flink's Calc: a projection and the filter under it in one."""
    where = ""
    inner = node.input
    if isinstance(node, Project) and isinstance(inner, Filter):
        where = f", where=[{expr_text(inner.condition, by_name(field_names(inner)))}]"
        inner = inner.input
    elif isinstance(node, Filter):
        where = f", where=[{expr_text(node.condition, by_name(field_names(inner)))}]"
    names = field_names(inner)
    select = list(names)
    if isinstance(node, Project):
        select = _select(node, names)
    if not where and select == list(names):
        return below(inner)
    return Tree(f"{name}(select=[{', '.join(select)}]{where})", (below(inner),))


def _select(node: Project, names: Sequence[str]) -> list[str]:
    texts = [expr_text(e, by_name(names)) for e in node.exprs]
    return [
        text if text == field.name else f"{text} AS {field.name}"
        for text, field in zip(texts, node.fields, strict=True)
    ]


def field_names(node: Logical) -> tuple[str, ...]:
    """The names of a node's fields, made different as Calcite does."""
    return unique_names([f.name for f in node.fields])


def _join_text(join: Join) -> str:
    condition = expr_text(join.condition, _position) if join.condition else "true"
    return f"condition=[{condition}], joinType=[{join.kind}]"


def _fields(scan: Scan) -> str:
    return f"fields=[{', '.join(f.name for f in scan.fields)}]"


def table_text(table: Table) -> str:
    return f"table=[[{table.name}]]"


def _source_text(table: Table) -> str:
    """The table and, in Flink's way, the class of its source: here its connector."""
    kind = "".join(part.capitalize() for part in table.connector.split("-"))
    names = ", ".join(c.name for c in table.columns)
    return f"table=[[{table.name}, source: [{kind}TableSource({names})]]]"


def expr_text(expr: Expr, refer: Refer) -> str:
    """Calcite's prefix text of an expression."""
    match expr:
        case Column():
            return refer(expr)
        case Literal():
            return literal_text(expr)
        case FieldAccess(row=row, field=field):
            return f"{expr_text(row, refer)}.{field}"
        case Call(op="CAST", args=(arg,)):
            return f"CAST({expr_text(arg, refer)} AS {_type_text(expr.type)})"
        case Call(op=op, args=args):
            return f"{op}({', '.join(expr_text(a, refer) for a in args)})"
        case _:
            assert_never(expr)


def literal_text(literal: Literal) -> str:
    """A constant with its type where the text alone would not tell it."""
    match literal.value, literal.type:
        case None, _:
            return "null"
        case bool() as value, _:
            return "true" if value else "false"
        case bytes() as value, _:
            return f"X'{value.hex()}'"
        case value, DataType(name="INTERVAL_DAY"):
            return f"{value}:INTERVAL SECOND"
        case value, DataType(name="INTERVAL_YEAR"):
            return f"{value}:INTERVAL MONTH"
        case str() as value, type_:
            quoted = "'" + value.replace("'", "''") + "'"
            return quoted if type_.name == "STRING" else f"{quoted}:{_type_text(type_)}"
        case value, _:
            return str(value)


def _type_text(type_: DataType) -> str:
    return with_nullable(type_, True).sql()


def by_name(names: Sequence[str]) -> Refer:
    return lambda column: names[column.index]


def _position(column: Column) -> str:
    return f"${column.index}"
