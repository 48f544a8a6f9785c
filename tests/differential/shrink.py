"""Leaves out steps, rows, columns and parts of the query as long as the outcome stays wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp, parse_one
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from tests.differential.case import Case, Crashed, Differs, Outcome, Unjudged, run
from tests.differential.dialect import parenthesised
from tests.differential.judge import Judge
from tests.differential.tables import Change, Table, is_sound

_TRIALS = 1500


class _Common(DuckDB):
    """Texts that both engines read."""

    class Generator(DuckDB.Generator):
        TYPE_MAPPING = DuckDB.Generator.TYPE_MAPPING | {
            exp.DataType.Type.TEXT: "STRING",
            exp.DataType.Type.VARCHAR: "STRING",
        }
        TRANSFORMS = DuckDB.Generator.TRANSFORMS | {
            exp.Version: lambda self, e: f"FOR SYSTEM_TIME AS OF {self.sql(e, 'expression')}",
            exp.StrPosition: lambda self, e: self.func("INSTR", e.this, e.args["substr"]),
        }


def is_wrong(outcome: Outcome) -> bool:
    return isinstance(outcome, Crashed | Unjudged | Differs)


class Shrinker:
    """A case is kept if it fails in the way that the first did: by a crash, or by its rows."""

    def __init__(self, case: Case, outcome: Outcome, judge: Judge) -> None:
        self._kind = type(outcome)
        self._best, self._outcome = case, outcome
        self._judge = judge
        self._trials = 0

    def shrink(self) -> tuple[Case, Outcome]:
        while True:
            before = self._best
            for part in (self._steps, self._changes, self._query_parts, self._simpler):
                part()
            if self._best == before or self._trials >= _TRIALS:
                return self._best, self._outcome

    def _takes(self, case: Case) -> bool:
        """Judge a smaller case, and keep it if it is still wrong."""
        if self._trials >= _TRIALS or not is_sound(case.tables, case.steps):
            return False
        self._trials += 1
        outcome = run(case, self._judge)
        if not self.is_alike(outcome):
            return False
        if isinstance(outcome, Differs):
            case = replace(case, steps=case.steps[: outcome.step + 1])
        self._best, self._outcome = case, outcome
        return True

    def is_alike(self, outcome: Outcome) -> bool:
        return type(outcome) is self._kind

    def _steps(self) -> None:
        self._takes(replace(self._best, restarts=frozenset()))
        if len(self._best.steps) > 1:
            joined = tuple(change for step in self._best.steps for change in step)
            self._takes(replace(self._best, steps=(joined,), restarts=frozenset()))
        for at in range(len(self._best.steps) - 1, -1, -1):
            if at < len(self._best.steps):
                self._takes(_without_step(self._best, at))

    def _changes(self) -> None:
        for number in range(len(self._best.steps) - 1, -1, -1):
            at = 0
            while number < len(self._best.steps) and at < len(self._best.steps[number]):
                size = 2 if self._best.steps[number][at].kind == "-U" else 1
                if not self._takes(_without_change(self._best, number, at, size)):
                    at += 1

    def _query_parts(self) -> None:
        """Try smaller texts of the query and the views, from the largest part to the smallest."""
        found = True
        while found and self._trials < _TRIALS:
            found = any(self._takes(case) for case in _smaller_texts(self._best))

    def _simpler(self) -> None:
        used = " ".join([self._best.query, *(text for _, text in self._best.views)])
        views = tuple(view for view in self._best.views if f" {view[0]} " in f"{used} ")
        tables = tuple(table for table in self._best.tables if f" {table.name} " in f"{used} ")
        self._takes(_of_tables(self._best, tables, views))
        for table in self._best.tables:
            for column in range(len(table.columns) - 1, -1, -1):
                self._takes(_without_column(self._best, table.name, column))
        if self._best.sink == "retract":
            self._takes(replace(self._best, sink="debezium"))
        steps = tuple(tuple(replace(c, partition=0) for c in s) for s in self._best.steps)
        self._takes(replace(self._best, steps=steps))
        self._takes(replace(self._best, groups=128))
        self._values()

    def _values(self) -> None:
        """NULL for values that do not matter."""
        for number, step in enumerate(self._best.steps):
            for at, change in enumerate(step):
                for i, value in enumerate(change.row):
                    if value is None or not (0 <= number < len(self._best.steps)):
                        continue
                    row = self._best.steps[number][at].row
                    fewer = (*row[:i], None, *row[i + 1 :])
                    self._takes(_with_row(self._best, change.table, row, fewer))


def _without_step(case: Case, at: int) -> Case:
    restarts = frozenset(n - (n > at) for n in case.restarts)
    return replace(case, steps=case.steps[:at] + case.steps[at + 1 :], restarts=restarts)


def _without_change(case: Case, number: int, at: int, size: int) -> Case:
    step = case.steps[number]
    rest = step[:at] + step[at + size :]
    if not rest:
        return _without_step(case, number)
    return replace(case, steps=(*case.steps[:number], rest, *case.steps[number + 1 :]))


def _of_tables(case: Case, tables: Sequence[Table], views: Sequence[tuple[str, str]]) -> Case:
    names = {table.name for table in tables}
    steps = tuple(tuple(c for c in step if c.table in names) for step in case.steps)
    return replace(case, tables=tuple(tables), views=tuple(views), steps=steps)


def _without_column(case: Case, table: str, column: int) -> Case:
    tables = tuple(_narrower(t, column) if t.name == table else t for t in case.tables)

    def rest(change: Change) -> Change:
        row = change.row[:column] + change.row[column + 1 :]
        return replace(change, row=row) if change.table == table else change

    steps = tuple(tuple(map(rest, step)) for step in case.steps)
    return replace(case, tables=tables, steps=steps)


def _narrower(table: Table, column: int) -> Table:
    key = tuple(i - (i > column) for i in table.key if i != column)
    return replace(table, columns=table.columns[:column] + table.columns[column + 1 :], key=key)


def _with_row(case: Case, table: str, row: tuple[object, ...], other: tuple[object, ...]) -> Case:
    def changed(change: Change) -> Change:
        is_it = change.table == table and change.row == row
        return replace(change, row=other) if is_it else change

    return replace(case, steps=tuple(tuple(map(changed, step)) for step in case.steps))


def _smaller_texts(case: Case) -> Iterator[Case]:
    for text in _smaller(case.query):
        yield replace(case, query=text)
    for at, (name, text) in enumerate(case.views):
        for other in _smaller(text):
            yield replace(case, views=(*case.views[:at], (name, other), *case.views[at + 1 :]))


def _smaller(text: str) -> Iterator[str]:
    """Texts with one part less. Nodes are counted anew in each copy, breadth first.

    Where it makes no difference, parentheses come first; without them there are no smaller texts.
    """
    if (clear := parenthesised(text)) != text:
        yield clear
    try:
        count = sum(1 for _ in parse_one(text, dialect=_Common).bfs())
    except SqlglotError:
        return
    for number in range(count):
        for way in range(6):
            tree = parse_one(text, dialect=_Common)
            node = list(tree.bfs())[number]
            if (smaller := _cut_at(tree, node, way)) is not None:
                yield smaller.sql(dialect=_Common)


def _cut_at(tree: exp.Expr, node: exp.Expr, way: int) -> exp.Expr | None:
    """The tree without the node or with a part of it in its place; None if there is no such way."""
    match node:
        case exp.Union():
            return _put(tree, node, [node.left, node.right], way)
        case exp.Select():
            return _cut_select(tree, node, way)
        case exp.Join():
            return _cut_join(tree, node, way)
        case exp.Subquery() if isinstance(node.parent, exp.From | exp.Join):
            tables = list(node.find_all(exp.Table))
            for table in tables:
                table.set("alias", None)
            alias = node.args.get("alias")
            inner = [exp.Table(this=t.this.copy(), alias=alias) for t in tables]
            return _put(tree, node, inner, way)
        case exp.Binary() if not isinstance(node, exp.Dot):
            return _put(tree, node, [node.left, node.right], way)
        case exp.Case() | exp.Coalesce() | exp.Nullif() | exp.Func() | exp.Unary() | exp.Filter():
            return _put(tree, node, list(node.iter_expressions()), way)
        case exp.If():
            return None
    return None


def _put(tree: exp.Expr, node: exp.Expr, parts: Sequence[exp.Expr], way: int) -> exp.Expr | None:
    if way >= len(parts):
        return None
    part = parts[way]
    if isinstance(part, exp.If):
        part = part.args["true"]
    if isinstance(part, exp.Binary) and isinstance(node, exp.Paren):
        return None  # what stands around it may bind more tightly
    if node is tree:
        return part.copy()
    node.replace(part.copy())
    return tree


def _cut_select(tree: exp.Expr, node: exp.Select, way: int) -> exp.Expr | None:
    """Without a clause; HAVING stays where a global aggregate would have a row of its own."""
    clauses: list[str] = ["where", "distinct"]
    if node.args.get("group") is not None:
        clauses.append("having")
    if way < len(clauses):
        if node.args.get(clauses[way]) is None:
            return None
        node.set(clauses[way], None)
        return tree
    at = way - len(clauses)
    if len(node.expressions) > 1 and at < len(node.expressions):
        node.expressions[at].pop()
        return tree
    return None


def _cut_join(tree: exp.Expr, node: exp.Join, way: int) -> exp.Expr | None:
    match way:
        case 0:
            node.pop()
        case 1 if node.args.get("side"):
            node.set("side", None)
        case _:
            return None
    return tree
