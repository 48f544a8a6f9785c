"""UNNEST as an operator: rows with the elements of a collection."""

from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.keys import smallest
from spark_jobs.plan.nodes.physical import Unnest as UnnestMachine
from spark_jobs.plan.strategy.building import Building, Input, Planned, Required, Shape
from spark_jobs.plan.strategy.join_sides import unique_names
from spark_jobs.plan.strategy.operator import operator
from spark_jobs.plan.strategy.scans import row_type, text_of
from spark_jobs.plan.strategy.timing import timing
from spark_jobs.sql.logical import Unnest, column
from spark_jobs.sql.types.expr import Column, Expr, columns


def unnest(node: Unnest, required: Required, building: Building) -> Planned:
    """Each row with each element. Rows go by their key: the changes of a row meet in one task."""
    inner = node.input
    width = len(inner.fields)
    condition = () if node.condition is None else (node.condition,)
    read = columns((*required.exprs, *condition))
    is_column = isinstance(node.collection, Column)
    kept = sorted({i for i in read if i < width} | columns((node.collection,) if is_column else ()))
    fields = [f.name if i in kept or i >= width else "" for i, f in enumerate(node.fields)]
    *names, computed = unique_names([*fields, "" if is_column else "UNNEST"])
    row: list[tuple[str, Expr]] = [(names[i], column(inner.fields, i)) for i in kept]
    row += [] if is_column else [(computed, node.collection)]
    exprs = [expr for _, expr in row]
    key = smallest(facts(inner).upsert_keys)
    differing = [e for e in exprs if columns((e,))] or exprs  # constants tell no rows apart
    shape = Shape(
        row=tuple(row),
        key=tuple(differing if not key else (column(inner.fields, i) for i in sorted(key))),
        marks=required.forwards,
    )
    element = node.collection.type.element
    machine = UnnestMachine(
        join_type=node.kind,
        collection=exprs.index(node.collection),
        spreads=element is not None and element.name == "ROW" and node.collection.type.key is None,
        ordinality=node.ordinality,
        residual=text_of(node.condition, names),
        schema=row_type((n, e.type) for n, e in row),
        elements=row_type((n, f.type) for n, f in zip(names[width:], node.elements, strict=True)),
    )
    followed = timing(building, ttl_ms=(0,), forwards=required.forwards)
    inputs = (Input(inner, shape),)
    return operator(machine, required, tuple(names), facts(node), followed, building, inputs)
