"""Binds WITH: its queries are views that only the query behind it can read."""

from dataclasses import replace

from sqlglot import exp

from spark_jobs.errors import CatalogError
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.relations import aliased
from spark_jobs.sql.parse.positions import start_of


def with_queries(context: QueryContext, node: exp.Expr) -> QueryContext:
    """The context of a query, which knows the queries of its WITH; takes WITH out of the node.

    A name hides a table or view of the same name, from the next query of the WITH on.
    """
    clause = node.args.pop("with_", None)
    if clause is None:
        return context
    if clause.args.get("recursive"):
        context.refuse(clause, "WITH RECURSIVE")
    seen: set[str] = set()
    for part in clause.expressions:
        alias = part.args["alias"]
        context.only(part, {"this", "alias"})
        if alias.name in seen:
            twice = CatalogError("TABLE_TWICE", f"{alias.name} is there twice in WITH")
            context.source.report(twice, start_of(alias))
            continue
        seen.add(alias.name)
        inner = context.nested(context.outer_of_from)
        context.source.broken.add(alias.name)
        names = context.names
        views = {name: view for name, view in names.views.items() if name != alias.name}
        with context.source.collecting():
            views[alias.name] = aliased(context.source, inner.bind(part.this), alias)
            context.source.broken.discard(alias.name)
        tables = {name: table for name, table in names.tables.items() if name != alias.name}
        context = replace(context, names=replace(names, views=views, tables=tables))
    return context
