"""Binds `ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...)` in a select list."""

from dataclasses import dataclass, field, replace

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.projections import project, unique_names
from spark_jobs.sql.bind.scope import Scope
from spark_jobs.sql.logical import Field, Logical, Position, RowNumber, SortKey, all_columns
from spark_jobs.sql.parse.positions import Complaint, others, start_of
from spark_jobs.sql.types.data_types import BIGINT, with_nullable
from spark_jobs.sql.types.expr import Column, Expr, transform

_PARTS = {"this", "partition_by", "order", "over"}
_ORDERED = {"this", "desc", "nulls_first"}
_TYPE = with_nullable(BIGINT, False)


@dataclass(frozen=True, slots=True)
class _Window:
    """One OVER: expressions over the input."""

    partition: tuple[Expr, ...]
    order: tuple[tuple[Expr, bool, bool], ...]
    name: str
    start: int


@dataclass(slots=True)
class Ranking:
    """The row numbers of one select list.

    While it is bound, row number i is the column behind the input's, at `width + i`.
    """

    scope: Scope
    width: int
    windows: list[_Window] = field(default_factory=list)

    def bind(self, node: exp.Expr) -> Expr | None:
        """The column that stands for an OVER; None for any other expression."""
        if not isinstance(node, exp.Window):
            return None
        at = Complaint(self.scope.source)
        function = node.this
        name = function.name.upper() if isinstance(function, exp.Anonymous) else ""
        if name != "ROW_NUMBER" or function.expressions:
            hint = "the only function with OVER is ROW_NUMBER()"
            at.refuse(node, f"{name} OVER".strip(), hint)
        order_by = [] if node.args.get("order") is None else node.args["order"].expressions
        if others(node, _PARTS) or any(others(o, _ORDERED) for o in order_by):
            at.refuse(node, "OVER with a frame or a named window", "leave it out: it has no effect")
        if not order_by:
            at.fail("WRONG_ARGUMENT", "ROW_NUMBER() needs ORDER BY", node, "ORDER BY a time column")
        binder = ExpressionBinder(self.scope)
        partition = tuple(binder.bind(e) for e in node.args.get("partition_by") or [])
        order = tuple(
            (binder.bind(o.this), bool(o.args.get("desc")), bool(o.args.get("nulls_first")))
            for o in order_by
        )
        alias = node.parent.alias if isinstance(node.parent, exp.Alias) else "ROW_NUMBER"
        self.windows.append(_Window(partition, order, alias, start_of(node)))
        return Column(self.width + len(self.windows) - 1, alias, _TYPE)

    def rows(self, input_: Logical) -> Logical:
        """The input with a row number per window; computed keys stand before them."""
        computed = self._computed()
        if computed:
            known = [*(f.name for f in input_.fields), *(None for _ in computed)]
            input_ = project(input_, [*all_columns(input_), *computed], unique_names(known))
        for window in self.windows:
            fields = [*input_.fields, Field(window.name, _TYPE)]
            names = unique_names([f.name for f in fields])
            input_ = RowNumber(
                input_,
                tuple(dict.fromkeys(self._place(e) for e in window.partition)),
                tuple(SortKey(self._place(e), *how) for e, *how in window.order),
                tuple(Field(n, f.type, f.time) for n, f in zip(names, fields, strict=True)),
                Position(*self.scope.source.position(window.start)),
            )
        return input_

    def over(self, expr: Expr) -> Expr:
        """An expression of the select list over what `rows` gives."""
        shift = len(self._computed())

        def placed(column: Column) -> Column:
            return replace(column, index=column.index + shift * (column.index >= self.width))

        return transform(expr, placed) if shift else expr

    def _computed(self) -> list[Expr]:
        """The expressions, other than columns, that windows partition or order by; each once."""
        found = [e for w in self.windows for e in (*w.partition, *(o for o, *_ in w.order))]
        return list(dict.fromkeys(e for e in found if not isinstance(e, Column)))

    def _place(self, expr: Expr) -> int:
        return expr.index if isinstance(expr, Column) else self.width + self._computed().index(expr)
