"""Calls of Python functions in a SELECT list and its WHERE: columns that Python computes first."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from spark_jobs.errors import UnsupportedError
from spark_jobs.plan.nodes.parts import PythonColumn
from spark_jobs.plan.spark_sql.expressions import render
from spark_jobs.plan.strategy.scans import row_type
from spark_jobs.sql.logical import Filter, Logical, Project, Union
from spark_jobs.sql.types.expr import (
    Call,
    Column,
    Expr,
    FieldAccess,
    PythonCall,
    and_all,
    conjuncts,
    python_calls,
    walk,
)


@dataclass(slots=True)
class PythonColumns:
    """The columns that the calls of a few expressions become, behind those of `names`.

    A call whose arguments have calls comes after these.
    """

    names: list[str]
    columns: list[PythonColumn] = field(default_factory=list)
    _known: dict[PythonCall, Column] = field(default_factory=dict)

    def text(self, expr: Expr) -> str:
        """Spark's text of the expression, over all columns."""
        found = self._lifted(expr)
        return render(found, self.names)

    def _lifted(self, expr: Expr) -> Expr:
        match expr:
            case PythonCall(args=args):
                return self._column(replace(expr, args=tuple(map(self._lifted, args))))
            case Call(args=args):
                return replace(expr, args=tuple(map(self._lifted, args)))
            case FieldAccess(row=row):
                return replace(expr, row=self._lifted(row))
            case _:
                return expr

    def _column(self, call: PythonCall) -> Column:
        if call not in self._known:
            name = f"$f{len(self.columns)}"
            self._known[call] = Column(len(self.names), name, call.type)
            texts = tuple(render(argument, self.names) for argument in call.args)
            types = row_type((f"argument{i}", a.type) for i, a in enumerate(call.args))
            schema = row_type([(name, call.type)])
            self.columns.append(PythonColumn(call.target, texts, types, schema))
            self.names.append(name)
        return self._known[call]


def divided(where: Expr | None) -> tuple[Expr | None, Expr | None]:
    """The part of a condition that needs no Python, and the rest."""
    parts = conjuncts(where)
    rest = [part for part in parts if python_calls((part,))]
    return and_all(part for part in parts if part not in rest), and_all(rest)


def read_by(exprs: Sequence[Expr]) -> Iterator[Expr]:
    """The expressions, with what calls of Python functions read in place of those that have any.

    Functions are deterministic: what they read tells results apart.
    """
    for expr in exprs:
        if python_calls((expr,)):
            yield from (e for e in walk(expr) if isinstance(e, Column))
        else:
            yield expr


def select_lists(node: Logical) -> Iterator[Expr]:
    """The expressions of the SELECT list and WHERE above all operators, and below UNION ALL."""
    match node:
        case Project(input=inner, exprs=exprs):
            yield from (*exprs, *select_lists(inner))
        case Filter(input=inner, condition=condition):
            yield from (condition, *select_lists(inner))
        case Union(inputs=inputs):
            for input_ in inputs:
                yield from select_lists(input_)


def refuse_calls(exprs: Iterable[Expr], where: str, hint: str) -> None:
    """Raises UnsupportedError at the first call of a Python function."""
    for call in python_calls(exprs):
        message = f"the Python function {call.op} cannot be called {where}"
        at = (call.line, call.column)
        raise UnsupportedError("FUNCTION_PLACE", message, hint, line=at[0], column=at[1])
