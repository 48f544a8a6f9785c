"""Random SELECTs over tables and views, as text that both engines read."""

import random
import re
from dataclasses import dataclass, field, replace

from tests.differential.aggregates import aggregate
from tests.differential.common_columns import by_common_columns
from tests.differential.expressions import NUMBERS, Column, Expressions, Scope
from tests.differential.set_operations import set_operations, with_clause
from tests.differential.subqueries import Subqueries
from tests.differential.tables import PROCTIME, ROWTIME, Table
from tests.differential.time_joins import TimeJoins
from tests.differential.top_n import first_rows

_FIRST_ROWS = "ASC"
_JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_VALUE = (
    r"(OR|WHEN|THEN|ELSE)( NOT)? \(?([\w.]+ )?(NOT )?(IN |EXISTS )?\(SELECT"
    r"|, \(SELECT"
)
_BY_PATTERN = {
    "by precedence": "⟦",
    "semi or anti join": r"EXISTS|IN \(SELECT",
    "scalar subquery": r"\(SELECT (COUNT|MIN|MAX)\(",
    "aggregate": r"GROUP BY|HAVING",
    "deduplication": "rn = 1",
    "Top-N": "rn <=|rn BETWEEN|LIMIT",
    "union": "UNION",
    "INTERSECT or EXCEPT": "INTERSECT|EXCEPT",
    "WITH": r"^WITH ",
    "values in order": "LISTAGG|ARRAY_AGG|FIRST_VALUE|LAST_VALUE",
    "a variance": "STDDEV|VAR_|VARIANCE",
    "several grouping sets": "ROLLUP|CUBE",
    "HAVING with a subquery": r"HAVING .*\(SELECT",
    "USING": r"USING \(",
    "a subquery as a value": _VALUE,
    "several joins": r"JOIN .* JOIN",
    "outer join": r"(LEFT|RIGHT|FULL) JOIN",
}
CONSTRUCTS = (
    *_BY_PATTERN,
    "interval join",
    "outer interval join",
    "event-time temporal join",
    "processing-time temporal join",
)
_EQUAL = ("=", "=", "=", "IS NOT DISTINCT FROM")


@dataclass(frozen=True, slots=True)
class Select:
    """Text and output columns; `key` are the names of columns that are never NULL."""

    text: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _From:
    """`where`: conditions of a comma join. `key`: the first table's key, if nothing pads it.

    `clocks`: columns of processing time. `appends`: whether rows only come, with their times.
    """

    text: str
    scope: Scope
    where: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    appends: bool = False


@dataclass(slots=True)
class Queries:
    """Makes random queries; `views` collects the views that they read.

    `timed`: how often relations with times are joined by them. `waits`: as in `Case`.
    """

    rng: random.Random
    tables: tuple[Table, ...]
    timed: float = 0.1
    waits: bool = False
    time_joins: set[str] = field(default_factory=set)
    views: list[tuple[str, str]] = field(default_factory=list)
    _names: int = 0
    _known: list[tuple[str, tuple[Column, ...]]] = field(default_factory=list)

    def query(self) -> Select:
        if self.rng.random() < 0.25:
            self._make_view()
        made = self._select(self.rng.choice([1, 2, 2, 3]))
        if self.views and not self.time_joins and self.rng.random() < 0.4:
            text = with_clause(self.views, made.text)
            self.views.clear()
            return replace(made, text=text)
        return made

    def _make_view(self) -> None:
        made = self._select(1)
        name = f"v{len(self.views)}"
        self.views.append((name, made.text))
        self._known.append((name, made.columns))

    def _select(self, depth: int) -> Select:
        roll = self.rng.random()
        if roll < 0.1:
            return self._union(depth)
        if roll < 0.35:
            return self._grouped(depth)
        return self._plain(depth)

    def _plain(self, depth: int) -> Select:
        source = self._from(depth)
        e = Expressions(self.rng)
        chosen = [e.any(source.scope) for _ in range(self.rng.randint(1, 4))]
        items = [(c.text, c.type) for c in chosen]
        if depth > 0 and self.rng.random() < 0.1:
            inner = self._from(0)
            items.append(self._subqueries().value(source.scope, inner.text, inner.scope))
        key: tuple[str, ...] = ()
        roll = self.rng.random()
        if roll < 0.2:
            items.insert(0, self._never_null(source.scope))
            key = ("c0",)
        elif roll < 0.6 and source.key:
            kinds = {c.text: c.type for c in source.scope}
            items = [(text, kinds[text]) for text in source.key] + items
            key = tuple(f"c{i}" for i in range(len(source.key)))
        distinct = "DISTINCT " if self.rng.random() < 0.15 else ""
        where = self._where(source, depth)
        return _assembled(f"SELECT {distinct}", items, source, where, "", key)

    def _never_null(self, scope: Scope) -> tuple[str, str]:
        e = Expressions(self.rng)
        kind = self.rng.choice(["INT", "STRING"])
        return f"COALESCE({e.of(kind, scope, 0)}, {e.constant(kind)})", kind

    def _grouped(self, depth: int) -> Select:
        source = self._from(depth)
        e = Expressions(self.rng)
        key: tuple[str, ...] = ()
        groups: list[tuple[str, str]] = []
        if self.rng.random() < 0.4:
            groups, key = [self._never_null(source.scope)], ("c0",)
        elif self.rng.random() < 0.85:
            usable = [c for c in source.scope if c.type != ROWTIME] or list(source.scope)
            size = self.rng.randint(1, min(2, len(usable)))
            groups = [(c.text, c.type) for c in self.rng.sample(usable, size)]
        is_rolled = bool(groups) and self.rng.random() < 0.1
        # not all rows of a set that lacks a key have the same one
        alike = [] if is_rolled else groups
        calls = [aggregate(self.rng, source.scope, alike) for _ in range(self.rng.randint(1, 3))]
        items = groups + calls
        by = ", ".join(dict.fromkeys(text for text, _ in groups))
        having = [] if groups else ["COUNT(*) > 0"]
        if is_rolled:
            by, key = f"{self.rng.choice(['ROLLUP', 'CUBE'])} ({by})", ()
            having = ["COUNT(*) > 0"]
        by = f" GROUP BY {by}" if groups else ""
        if self.rng.random() < 0.3:
            call, kind = aggregate(self.rng, source.scope, [])
            compared = e.constant(kind)
            if depth > 0 and self.rng.random() < 0.3:
                inner = self._from(0)
                compared = self._subqueries().of_type(kind, inner.text, inner.scope) or compared
            having.append(f"({call} {self.rng.choice(['>', '<=', '<>'])} {compared})")
        if having:
            by += f" HAVING {' AND '.join(having)}"
        return _assembled("SELECT ", items, source, self._where(source, depth), by, key)

    def _union(self, depth: int) -> Select:
        kinds = self.rng.sample(["INT", "BIGINT", "STRING", "DOUBLE", "DATE"], 2)
        parts = [self._part_of_union(depth - 1, kinds) for _ in range(self.rng.randint(2, 3))]
        columns = tuple(Column(f"c{i}", kind) for i, kind in enumerate(kinds))
        return Select(set_operations(self.rng, parts), columns)

    def _part_of_union(self, depth: int, kinds: list[str]) -> str:
        source = self._from(max(depth, 0))
        items = [(Expressions(self.rng).of(kind, source.scope, 1), kind) for kind in kinds]
        return _assembled("SELECT ", items, source, self._where(source, 0), "").text

    def _from(self, depth: int) -> _From:
        """A relation, or several that are joined: often over one key, and then in one operator."""
        is_timed = self.rng.random() < self.timed
        left = self._timed_table() if is_timed else self._relation(depth)
        joins = self.rng.choice([0, 1, 1, 1, 2, 3]) if depth > 0 else 0
        if joins > 1 and self.rng.random() < 0.5 * (1 - self.timed):
            return self._chain(left, joins)
        for _ in range(joins):
            # a JOIN after a comma joins the last relation in DuckDB, but all before it in Flink
            if not left.where:
                timed = self._joined_by_time(left) if self.rng.random() < self.timed else None
                left = timed or self._joined(left, self._right(depth - 1))
        return left

    def _chain(self, left: _From, joins: int) -> _From:
        shared = self.rng.choice([c for c in left.scope if c.type != ROWTIME] or [left.scope[0]])
        for _ in range(joins):
            right = self._relation(0)
            same = [c for c in right.scope if c.type == shared.type != ROWTIME]
            if not same:
                continue
            condition = f"({shared.text} = {self.rng.choice(same).text})"
            scope = (*left.scope, *right.scope)
            if self.rng.random() < 0.3:
                condition += f" AND {Expressions(self.rng).predicate(scope, 1)}"
            join = self.rng.choice(["JOIN", "LEFT JOIN"])
            text = f"{left.text} {join} {right.text} ON {condition}"
            left = _From(text, scope, left.where, left.key, left.clocks)
        return left

    def _right(self, depth: int) -> _From:
        if self.rng.random() < 0.1:
            inner = self._joined(self._relation(0), self._relation(0))
            if not inner.where:
                return _From(f"({inner.text})", inner.scope)
        return self._relation(depth)

    def _joined(self, left: _From, right: _From) -> _From:
        scope = (*left.scope, *right.scope)
        where = (*left.where, *right.where)
        condition = self._condition(left.scope, right.scope)
        if self.rng.random() < 0.08 and " JOIN " not in left.text:
            return _From(f"{left.text}, {right.text}", scope, (*where, condition), left.key)
        join = self.rng.choice(_JOINS)
        if self.rng.random() < 0.1 and (common := by_common_columns(self.rng, left, right, join)):
            text, columns = common
            return _From(text, columns, where)
        key = left.key if join in ("JOIN", "LEFT JOIN") else ()
        return _From(f"{left.text} {join} {right.text} ON {condition}", scope, where, key)

    def _joined_by_time(self, left: _From) -> _From | None:
        """An interval or a temporal join with a table; None if the two lack the times for it."""
        is_interval = left.appends and self.rng.random() < 0.5
        usable = [t for t in self.tables if not is_interval or t.mode == "append"]
        table, alias = self.rng.choice(usable or self.tables), self._alias()
        if not is_interval and table.mode == "append" and table.rowtime is not None:
            table = self._versioned_view(table)
        right = self._table(table, alias)
        joins = TimeJoins(self.rng, left.scope, right.scope)
        if not is_interval and (text := joins.temporal(table, alias, left.clocks)):
            by_event_time = f".{PROCTIME} AS " not in text
            self.waits |= by_event_time
            self.time_joins.add(f"{'event' if by_event_time else 'processing'}-time temporal join")
            whole, scope = f"{left.text} {text}", left.scope + _padded(right.scope)
            # a row that has waited has another processing time
            clocks = () if by_event_time else left.clocks
            return _From(whole, scope, left.where, left.key, clocks, left.appends)
        if not (left.appends and right.appends):
            return None
        word, condition = joins.interval(self._equality(left.scope, right.scope))
        if not condition:
            return None
        self.waits |= word != "JOIN"
        self.time_joins.add("interval join" if word == "JOIN" else "outer interval join")
        key = left.key if word in ("JOIN", "LEFT JOIN") else ()
        scope = left.scope + right.scope
        scope = scope if word == "JOIN" else _padded(scope)
        text = f"{left.text} {word} {right.text} ON {condition}"
        return _From(text, scope, left.where, key, (), appends=True)

    def _condition(self, left: Scope, right: Scope) -> str:
        e = Expressions(self.rng)
        parts: list[str] = []
        for _ in range(self.rng.choice([1] * 12 + [2] * 4 + [0])):
            parts += self._equality(left, right)
        if self.rng.random() < 0.3 or not parts:
            parts.append(e.predicate((*left, *right), 1))
        self.rng.shuffle(parts)
        return " AND ".join(parts)

    def _equality(self, left: Scope, right: Scope) -> list[str]:
        pairs = [(a, b) for a in left for b in right if a.type == b.type != ROWTIME]
        if self.rng.random() < 0.1:
            pairs = [
                (a, b)
                for a in left
                for b in right
                if a.type != b.type and a.type in NUMBERS and b.type in NUMBERS
            ]
        if not pairs:
            return []
        a, b = self.rng.choice(pairs)
        text = b.text
        if self.rng.random() < 0.1:
            text = Expressions(self.rng).of(b.type, right, 1)
        if self.rng.random() < 0.05:
            return [f"(({a.text} = {text}) OR (({a.text} IS NULL) AND ({text} IS NULL)))"]
        return [f"({a.text} {self.rng.choice(_EQUAL)} {text})"]

    def _relation(self, depth: int) -> _From:
        alias = self._alias()
        if self._known and self.rng.random() < 0.3:
            name, columns = self.rng.choice(self._known)
            return _From(f"{name} AS {alias}", _under(alias, columns))
        roll = self.rng.random()
        if depth > 0 and roll < 0.35 * (1 - self.timed / 2):
            made = self._select(depth - 1)
            return _From(f"({made.text}) AS {alias}", _under(alias, made.columns))
        table = self.rng.choice(self.tables)
        if table.rowtime is not None and table.mode == "append" and roll > 0.8:
            return self._ranked(table, alias)
        if roll > 0.75:
            text, columns = first_rows(self.rng, table)
            return _From(f"{text} AS {alias}", _under(alias, columns))
        return self._table(table, alias)

    def _timed_table(self) -> _From:
        """A table to which rows are only added, with their times, if there is one."""
        usable = [t for t in self.tables if t.mode == "append" and t.rowtime is not None]
        return self._table(self.rng.choice(usable or self.tables), self._alias())

    def _table(self, table: Table, alias: str) -> _From:
        key = tuple(f"{alias}.{table.columns[i][0]}" for i in table.key)
        clocks = (f"{alias}.{PROCTIME}",) if table.is_clocked else ()
        scope = _under(alias, tuple(Column(name, kind) for name, kind in table.columns))
        appends = table.mode == "append"
        return _From(f"{table.name} AS {alias}", scope, (), key, clocks, appends)

    def _versioned_view(self, table: Table) -> Table:
        """A view of the last row of each key, which a temporal join reads as a history."""
        key = self.rng.choice([i for i in range(len(table.columns)) if i != table.rowtime])
        columns = tuple(Column(name, kind) for name, kind in table.columns)
        name = f"v{len(self.views)}"
        self.views.append((name, _first_of_each(table, table.columns[key][0], "DESC")))
        self._known.append((name, columns))
        return Table(name, "view", table.columns, (key,))

    def _ranked(self, table: Table, alias: str) -> _From:
        columns = tuple(Column(name, kind) for name, kind in table.columns)
        by = self.rng.choice([c.text for c in columns if c.type != ROWTIME])
        order = self.rng.choice(["DESC", "DESC", _FIRST_ROWS])
        self.waits |= order == _FIRST_ROWS
        text = f"({_first_of_each(table, by, order)}) AS {alias}"
        return _From(text, _under(alias, columns))

    def _where(self, source: _From, depth: int) -> str:
        parts = list(source.where)
        if self.rng.random() < 0.3:
            parts.append(Expressions(self.rng).predicate(source.scope, 2))
        if depth > 0 and self.rng.random() < 0.25:
            inner = self._from(0)
            parts.append(self._subqueries().condition(source.scope, inner.text, inner.scope))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _subqueries(self) -> Subqueries:
        return Subqueries(self.rng, self._condition, self._equality)

    def _alias(self) -> str:
        self._names += 1
        return f"r{self._names}"


def _padded(scope: Scope) -> Scope:
    """The event times of an outer join of either kind, as plain TIMESTAMP.

    By a time that is NULL the row is late (T3). By that of a padded row it drops rows:
    the padding of an interval join may leave when the watermark is exactly at its time.
    """
    return tuple(Column(c.text, "TIMESTAMP" if c.type == ROWTIME else c.type) for c in scope)


def constructs(text: str, queries: Queries) -> list[str]:
    """What a query is made of, by its text."""
    whole = " ".join([text, *(view for _, view in queries.views)])
    named = [name for name, pattern in _BY_PATTERN.items() if re.search(pattern, whole)]
    return [*named, *sorted(queries.time_joins)]


def _first_of_each(table: Table, by: str, order: str) -> str:
    names = ", ".join(name for name, _ in table.columns)
    number = f"ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY rt {order}) AS rn"
    numbered = _selected(f"{names}, {number}", table.name)
    return _selected(names, f"({numbered})", " WHERE rn = 1")


def _selected(what: str, source: str, where: str = "") -> str:
    return f"SELECT {what} FROM {source}{where}"  # noqa: S608 - of names made here


def _under(alias: str, columns: tuple[Column, ...]) -> Scope:
    return tuple(Column(f"{alias}.{c.text}", c.type) for c in columns)


def _assembled(
    select: str,
    items: list[tuple[str, str]],
    source: _From,
    where: str,
    rest: str,
    key: tuple[str, ...] = (),
) -> Select:
    listed = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))
    columns = tuple(Column(f"c{i}", kind) for i, (_, kind) in enumerate(items))
    return Select(f"{select}{listed} FROM {source.text}{where}{rest}", columns, key)
