"""Lookup joins as operators: left rows with the rows of a table in a database."""

from collections.abc import Iterator

from spark_jobs.options.jdbc import JdbcOptions
from spark_jobs.plan.facts.changelog import INSERT
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.lookups import key_places, looked_up, lookup_condition
from spark_jobs.plan.facts.sources import Source, inline
from spark_jobs.plan.nodes.parts import Advice, Cache, Lookup, LookupColumn, Named
from spark_jobs.plan.nodes.physical import LookupJoin
from spark_jobs.plan.spark_sql.expressions import render
from spark_jobs.plan.strategy.building import (
    Building,
    Planned,
    Required,
    not_repeatable,
    warning,
)
from spark_jobs.plan.strategy.join_operators import growth
from spark_jobs.plan.strategy.join_sides import (
    JoinSides,
    join_inputs,
    join_sides,
    keeps_order,
    side_row,
)
from spark_jobs.plan.strategy.operator import operator
from spark_jobs.plan.strategy.scans import column_names, text_of
from spark_jobs.plan.strategy.timing import state_ttl, timing
from spark_jobs.sql.logical import Join
from spark_jobs.sql.types.expr import columns

_WHERE = ("url", "table-name", "driver", "username", "password")


def lookup_join(join: Join, required: Required, building: Building) -> Planned:
    """Each left row with the rows that the database has of its key; only left rows are read.

    What was looked up is kept for left rows that may change, and only for those.
    """
    source = looked_up(join)
    if source is None:
        raise ValueError("the join looks nothing up")
    sides = join_sides(join, required.exprs, building, lookup_condition(join, source))
    changes = facts(join.left).kinds != INSERT
    ttl_ms = state_ttl(building, join.ttl_ms) if changes else (0, 0)
    machine = LookupJoin(
        join_type="left" if join.kind == "left" else "inner",
        lookup=_lookup(source, sides, building),
        pair=sides.pair(),
        probe_changes=changes,
    )
    kept = (join.left,) if changes else ()
    left, _ = join_inputs(join, sides, marks=(required.forwards, False))
    warnings = (
        *growth(kept, (max(ttl_ms),) * len(kept)),
        not_repeatable("which row a row meets depends on when it is looked up"),
        *_stale(source),
    )
    return operator(
        machine,
        required,
        sides.names,
        facts(join),
        timing(building, ttl_ms=ttl_ms, forwards=required.forwards),
        building,
        (left,),
        warnings,
        ordered=keeps_order(join),
    )


def _lookup(source: Source, sides: JoinSides, building: Building) -> Lookup:
    table, names = source.table, column_names(source.table)
    row = side_row(sides.right, sides.kept_names(1))
    sent = [(name, inline(expr, source.exprs)) for name, expr in row]
    key = key_places(sides.condition, source)
    filters = () if source.filter is None else (source.filter,)
    read = sorted(columns([*(e for _, e in sent), *filters]).union(key))
    options = table.options.jdbc
    return Lookup(
        table=table.name,
        columns=tuple(
            LookupColumn(c.name, c.type, c.type.sql(), c.type.nullable)
            for c in (table.columns[i] for i in read)
        ),
        key=tuple(read.index(i) for i in key),
        filter=text_of(source.filter, names),
        row=tuple(Named(name, render(expr, names)) for name, expr in sent),
        properties={n: v for n, v in table.options.given.items() if n in _WHERE},
        max_retry_timeout_ms=options.max_retry_timeout_ms,
        max_retries=options.max_retries,
        cache=_cache(options),
        time_zone=building.time_zone,
    )


def _cache(options: JdbcOptions) -> Cache | None:
    if options.cache == "NONE":
        return None
    return Cache(
        max_rows=options.cache_max_rows,
        expire_after_write_ms=options.expire_after_write_ms,
        expire_after_access_ms=options.expire_after_access_ms,
        missing_keys=options.cache_missing_key,
    )


def _stale(source: Source) -> Iterator[Advice]:
    """Warnings of a cache whose rows never become new, or that has no end."""
    cache = _cache(source.table.options.jdbc)
    if cache is not None and cache.expire_after_write_ms is None:
        yield warning(
            f"rows of {source.table.name} are cached without an end: what changes in the database"
            " after its key was looked up is not seen",
            "'lookup.partial-cache.expire-after-write' = '10 min'  -- in the table's WITH",
        )
    if cache is not None and cache.max_rows is None:
        yield warning(
            f"the cache of {source.table.name} has no limit: it grows with the keys that come",
            "'lookup.partial-cache.max-rows' = '100000'  -- in the table's WITH",
        )
