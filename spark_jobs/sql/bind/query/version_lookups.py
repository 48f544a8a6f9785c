"""Refuses `r.t = (SELECT MAX(t) ... r2.t <= o.t)`, and shows the temporal join that it means.

The subquery looks up the version of a row that is valid at a time, as one does where there is no
temporal join. As a correlated query it would have to correct its results for ever; a temporal join
waits for the watermark instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.sql.bind.namespace import Namespace
from spark_jobs.sql.parse.dialect import Flink
from spark_jobs.sql.parse.parser import parse
from spark_jobs.sql.parse.positions import Complaint, others
from spark_jobs.sql.parse.source_text import SourceText
from spark_jobs.sql.parse.statements import Query


def refuse_version_lookup(source: SourceText, names: Namespace, node: exp.Expr) -> None:
    """Raises UnsupportedError if the subquery looks up a version; does nothing if it does not."""
    select = node.find_ancestor(exp.Select)
    lookup = _lookup(node)
    rewritten = lookup and select and _rewritten(lookup, select, names)
    if lookup and rewritten:
        what = f"SELECT MAX({lookup.time}) for the version at {lookup.as_of.sql(Flink)}"
        Complaint(source).refuse(node, what, f"write it as a temporal join: {rewritten}")


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The subquery: the greatest `time` of a table up to `as_of`, where `keys` are equal.

    `equality` compares it with the column `outside`; `keys` pairs columns of the table with what
    they equal in the query around it.
    """

    equality: exp.EQ
    outside: exp.Column
    table: str
    time: str
    as_of: exp.Column
    keys: dict[str, exp.Column]


def _lookup(node: exp.Expr) -> _Lookup | None:
    equality = node.find_ancestor(exp.EQ)
    match node, equality:
        case (
            exp.Select(expressions=[exp.Anonymous(expressions=[exp.Column() as time]) as item]),
            exp.EQ(this=exp.Column() as outside) | exp.EQ(expression=exp.Column() as outside),
        ) if item.name.upper() == "MAX" and not others(node, {"expressions", "from_", "where"}):
            pass
        case _:
            return None
    from_, where = node.args.get("from_"), node.args.get("where")
    if not where or not from_ or not isinstance(from_.this, exp.Table):
        return None
    alias = from_.this.alias_or_name
    bounds: list[exp.Column] = []
    keys: dict[str, exp.Column] = {}
    for part in _conjuncts(where.this):
        inner, outer = part.this, part.expression
        if isinstance(inner, exp.Column) and inner.table != alias:
            inner, outer = outer, inner
        swapped = inner is not part.this
        if not (isinstance(inner, exp.Column) and isinstance(outer, exp.Column)):
            return None
        if inner.table != alias or outer.table in ("", alias):
            return None
        if isinstance(part, exp.EQ):
            keys[inner.name] = outer
        elif isinstance(part, exp.GTE if swapped else exp.LTE) and inner.name == time.name:
            bounds.append(outer)
        else:
            return None
    if len(bounds) != 1 or not keys or outside.name != time.name:
        return None
    return _Lookup(equality, outside, from_.this.name, time.name, bounds[0], keys)


def _rewritten(lookup: _Lookup, select: exp.Select, names: Namespace) -> str | None:
    """The query around a lookup with a temporal join in its place; None if it is no such query."""
    joins = list(select.args.get("joins") or [])
    first = select.args["from_"].this
    versioned = lookup.outside.table
    if first.alias_or_name == versioned and len(joins) == 1 and not joins[0].side:
        first, joins = joins[0].this, [exp.Join(this=first, on=joins[0].args.get("on"))]
    at = next((i for i, j in enumerate(joins) if j.alias_or_name == versioned), None)
    if at is None or joins[at].this.name != lookup.table or joins[at].side not in ("", "LEFT"):
        return None
    join, where = joins.pop(at), select.args.get("where")
    on = _conjuncts(join.args.get("on"))
    filters = _conjuncts(where and where.this)
    keys = [p for p in (*on, *([] if join.side else filters)) if _is_key(p, lookup)]
    if not any(p is lookup.equality for p in (*on, *filters)) or len(keys) != len(lookup.keys):
        return None
    if any(versioned in _tables(j.args.get("on")) for j in joins):
        return None
    taken = [lookup.equality, *keys]
    rest_on, rest = ([p for p in parts if p not in taken] for parts in (on, filters))
    table = names.tables.get(lookup.table)
    needs_view = table is not None and not table.primary_key
    name = f"{lookup.table}_versions" if needs_view else lookup.table
    version = exp.Version(this="SYSTEM_TIME", kind="AS OF", expression=lookup.as_of.copy())
    alias = exp.TableAlias(this=exp.to_identifier(versioned))
    right = exp.Table(this=exp.to_identifier(name), version=version, alias=alias)
    temporal = exp.Join(this=right, side=join.side or None, on=exp.and_(*keys, *rest_on))
    found = select.copy()
    found.set("from_", exp.From(this=first.copy()))
    found.set("joins", [*(j.copy() for j in joins), temporal])
    found.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    query = _text(found)
    if table is None or not needs_view:
        return query
    return f"{_versions(name, lookup, [c.name for c in table.columns])} {query}"


def _text(query: exp.Select) -> str:
    """The query as SQL; only its FROM where sqlglot cannot write the rest as Flink reads it."""
    try:
        text: str = query.sql(Flink)
        match parse(SourceText(text)):
            case [Query(query=read)] if read == query:
                return text
    except ValueError:  # a node of ours, for which sqlglot has no text
        pass
    from_ = exp.Select(from_=query.args["from_"], joins=query.args["joins"]).sql(Flink)
    return f"SELECT ...{from_.removeprefix('SELECT')} ..."


def _versions(view: str, lookup: _Lookup, columns: Sequence[str]) -> str:
    """The view that makes versions of an append-only table."""
    listed, keys = (", ".join(map(_quoted, names)) for names in (columns, lookup.keys))
    window = f"PARTITION BY {keys} ORDER BY {_quoted(lookup.time)} DESC"
    ranked = f"SELECT *, ROW_NUMBER() OVER ({window}) AS n FROM {_quoted(lookup.table)}"  # noqa: S608
    return f"CREATE VIEW {_quoted(view)} AS SELECT {listed} FROM ({ranked}) WHERE n = 1;"  # noqa: S608


def _quoted(name: str) -> str:
    """The name as SQL text, in backticks where it needs them."""
    is_keyword = name.upper() in Flink.tokenizer_class.KEYWORDS
    return exp.to_identifier(name, quoted=is_keyword or None).sql(Flink)


def _is_key(part: exp.Expr, lookup: _Lookup) -> bool:
    """Whether a condition says of the joined table what the subquery says of its own."""
    if not isinstance(part, exp.EQ):
        return False
    return any(
        isinstance(own, exp.Column)
        and own.table == lookup.outside.table
        and lookup.keys.get(own.name) == other
        for own, other in ((part.this, part.expression), (part.expression, part.this))
    )


def _tables(node: exp.Expr | None) -> set[str]:
    return set() if node is None else {c.table for c in node.find_all(exp.Column)}


def _conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*_conjuncts(node.this), *_conjuncts(node.expression)]
    return [] if node is None else [node]
