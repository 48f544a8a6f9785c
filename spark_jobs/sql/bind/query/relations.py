"""What FROM is made of: tables and views by name, new names of columns, ON conditions."""

from dataclasses import replace

from sqlglot import exp

from spark_jobs.errors import CatalogError, SqlError
from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.namespace import Namespace
from spark_jobs.sql.bind.projections import project, scan
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.version_lookups import refuse_version_lookup
from spark_jobs.sql.bind.scope import Relation, Scope
from spark_jobs.sql.logical import Field, Logical, Position, all_columns
from spark_jobs.sql.parse.positions import start_of
from spark_jobs.sql.parse.source_text import NotBoundError, SourceText, nearest
from spark_jobs.sql.parse.statements import Name
from spark_jobs.sql.types.expr import Expr

Relations = tuple[Relation, ...]


def table_or_view(source: SourceText, names: Namespace, name: Name) -> Logical:
    """A table or view by its name.

    Raises:
        PositionedError, NotBoundError: there is none.
    """
    view = names.views.get(name.text)
    if view is not None:
        return view
    table = names.tables.get(name.text)
    if table is not None:
        return scan(table, Position(*source.position(name.start)))
    if name.text in source.broken:
        raise NotBoundError
    hint = nearest(name.text, (*names.tables, *names.views)) or (
        "put its CREATE TABLE or CREATE VIEW before this statement"
    )
    error = CatalogError("UNKNOWN_TABLE", f"no table or view {name.text}", hint)
    raise source.place(error, name.start)


def renamed(source: SourceText, node: Logical, names: list[Name]) -> Logical:
    """The node with other column names, as `AS t (a, b)` and `CREATE VIEW v (a, b)` give."""
    if len(names) != len(node.fields):
        raise source.place(
            SqlError("COLUMN_COUNT", f"{len(names)} names for {len(node.fields)} columns"),
            names[0].start,
        )
    return project(node, all_columns(node), [n.text for n in names])


def aliased(source: SourceText, node: Logical, alias: exp.Expr | None) -> Logical:
    """The node with the column names that its alias gives it, if it gives any."""
    renames = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return renamed(source, node, [Name(c.name, start_of(c)) for c in renames]) if renames else node


def join_scope(context: QueryContext, relations: Relations) -> Scope:
    """The names that ON and the arguments of a join can use."""
    return Scope(context.source, relations, context.outer_of_from)


def on_condition(
    context: QueryContext, node: exp.Expr, both: Relations, needed: bool
) -> Expr | None:
    """The ON condition; None for a comma or CROSS JOIN."""
    on = node.args.get("on")
    if on is not None:
        with context.source.collecting():
            if (subquery := on.find(exp.Select)) is not None:
                refuse_version_lookup(context.source, context.names, subquery)
            return ExpressionBinder(join_scope(context, both)).condition(on, "ON")
    elif node.args.get("kind") != "CROSS" and needed:
        error = SqlError("JOIN_WITHOUT_ON", "the join has no ON condition", "add ON ...")
        context.source.report(error, start_of(node.this))
    return None


def shifted(relations: Relations, offset: int) -> Relations:
    """The relations behind that many columns of others."""
    return tuple(replace(r, offset=r.offset + offset) for r in relations)


def over(node: Logical, relations: Relations) -> Relations:
    """The relations over the node's fields: those of padded sides are nullable."""
    return tuple(
        replace(
            r, fields=tuple(_typed(f, node.fields[r.offset + i]) for i, f in enumerate(r.fields))
        )
        for r in relations
    )


def _typed(named: Field, field: Field) -> Field:
    return replace(field, name=named.name)
