"""Rewrites of the logical plan. Each rule is a function of the whole tree; RULES is their order.

What they leave behind is one shape. Below an optional Sink stands a Project; it, and every input
of a node that keeps state (Join, Aggregate, Deduplicate, Rank) and of a Union, is
`Project?(Filter?(X))` where X is a Scan, a Union or a node that keeps state. A predicate only moves
where every row it removes could not have reached the result, for changes of either sign.
Expressions may be moved and repeated freely: the binder lets no call through that may differ from
one evaluation to the next.
"""

from collections.abc import Callable
from dataclasses import replace

from spark_jobs.options.settings import NOTHING_SET, DeclaredSettings
from spark_jobs.plan.facts.sources import inline
from spark_jobs.plan.rules.constant_rows import join_constants
from spark_jobs.plan.rules.constants import fold_constants
from spark_jobs.plan.rules.deduplication import correct_first_rows, deduplicate
from spark_jobs.plan.rules.empty_groups import count_no_rows
from spark_jobs.plan.rules.pruning import prune_columns
from spark_jobs.plan.rules.pushdown import push_filters
from spark_jobs.plan.rules.rewriting import map_inputs
from spark_jobs.plan.rules.top_n import rank
from spark_jobs.sql.logical import Filter, Join, Logical, Project, Sink, Union, all_columns
from spark_jobs.sql.types.expr import Call, Expr

Rule = Callable[[Logical], Logical]


def optimize(node: Logical, settings: DeclaredSettings = NOTHING_SET) -> Logical:
    """The plan after all rules; `settings` are the job's SET values."""
    for rule in RULES:
        node = rule(node)
    return correct_first_rows(node) if settings.mini_batch else node


def project_root(node: Logical) -> Logical:
    """Give the result a projection of its own, which holds its names."""
    match node:
        case Sink(input=inner):
            return replace(node, input=project_root(inner))
        case Project():
            return node
        case _:
            return Project(node, all_columns(node), node.fields)


def null_safe_equalities(node: Logical) -> Logical:
    """`a = b OR (a IS NULL AND b IS NULL)` is how people write `a IS NOT DISTINCT FROM b`."""
    node = map_inputs(node, null_safe_equalities)
    if isinstance(node, (Filter, Join)) and node.condition is not None:
        return replace(node, condition=_null_safe(node.condition))
    return node


def _null_safe(expr: Expr) -> Expr:
    match expr:
        case Call(op="AND", args=args):
            return replace(expr, args=tuple(_null_safe(a) for a in args))
        case Call(
            op="OR", args=(Call(op="=", args=pair) as equality, Call(op="AND", args=nulls))
        ) | (Call(op="OR", args=(Call(op="AND", args=nulls), Call(op="=", args=pair) as equality))):
            tested = {n.args[0] for n in nulls if isinstance(n, Call) and n.op == "IS NULL"}
            if len(nulls) == len(pair) and tested == set(pair):
                kind = replace(equality.type, nullable=False)
                return Call("IS NOT DISTINCT FROM", pair, kind)
    return expr


def merge_projects(node: Logical) -> Logical:
    """Make one projection of two that stand above each other."""
    node = map_inputs(node, merge_projects)
    match node:
        case Project(input=Project(input=inner, exprs=below)):
            return replace(node, input=inner, exprs=tuple(inline(e, below) for e in node.exprs))
        case _:
            return node


def flatten_unions(node: Logical) -> Logical:
    """A UNION ALL of UNION ALLs is one; their columns are of the same types by position."""
    node = map_inputs(node, flatten_unions)
    if not isinstance(node, Union):
        return node
    types = [f.type for f in node.fields]
    inputs: list[Logical] = []
    for input_ in node.inputs:
        nested = isinstance(input_, Union) and [f.type for f in input_.fields] == types
        inputs += input_.inputs if isinstance(input_, Union) and nested else (input_,)
    return replace(node, inputs=tuple(inputs))


RULES: tuple[Rule, ...] = (
    project_root,
    count_no_rows,
    fold_constants,
    null_safe_equalities,
    merge_projects,
    flatten_unions,
    join_constants,
    push_filters,
    deduplicate,
    rank,
    fold_constants,
    merge_projects,
    push_filters,
    merge_projects,
    prune_columns,
    merge_projects,
)
