"""What GROUP BY names: keys, and with GROUPING SETS, ROLLUP and CUBE the sets of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.scope import Scope
from spark_jobs.sql.parse.positions import Complaint, others, start_of
from spark_jobs.sql.types.data_types import DataType, with_nullable
from spark_jobs.sql.types.expr import Expr

_MOST_SETS = 64  # each is an aggregate with state of its own


@dataclass(frozen=True, slots=True)
class Groups:
    """Keys, each once, and the sets of their places by which rows are grouped: one if it is plain.

    Behind GROUP BY a key is NULL in the groups of a set that lacks it.
    """

    keys: tuple[Expr, ...]
    sets: tuple[frozenset[int], ...]

    @property
    def is_plain(self) -> bool:
        return self.sets == (frozenset(range(len(self.keys))),)

    @property
    def has_empty(self) -> bool:
        """Whether a set is one group for the whole table."""
        return any(not own for own in self.sets)

    def type_of(self, place: int) -> DataType:
        type_ = self.keys[place].type
        return with_nullable(type_, type_.nullable or self.is_lacking(place))

    def is_lacking(self, place: int) -> bool:
        """Whether a set lacks the key."""
        return any(place not in own for own in self.sets)


def groups_of(scope: Scope, node: exp.Select) -> Groups:
    """The groups of a query block; without GROUP BY the whole table is one.

    Raises:
        NotBoundError: problems, which are reported to the source.
    """
    group = node.args.get("group")
    keys: list[Expr] = []
    sets: list[frozenset[int]] = []
    with scope.source.all_or_nothing():
        elements: list[list[list[exp.Expr]]] = []
        if group is not None:
            for part in others(group, {"expressions"}):
                what = f"GROUP BY with {part.replace('_', ' ').upper()}"
                Complaint(scope.source).refuse(group if start_of(group) else node, what)
            elements = [list(_sets(element)) for element in group.expressions]
        for chosen in product(*elements):
            own: set[int] = set()
            for item in (item for items in chosen for item in items):
                with scope.source.collecting():
                    key = ExpressionBinder(scope).bind(item)
                    if key not in keys:
                        keys.append(key)
                    own.add(keys.index(key))
            sets.append(frozenset(own))
            if len(sets) > _MOST_SETS:
                hint = f"write at most {_MOST_SETS} sets"
                Complaint(scope.source).refuse(node, "GROUP BY of so many sets", hint)
    return Groups(tuple(keys), tuple(sets))


def _sets(node: exp.Expr) -> Iterator[list[exp.Expr]]:
    """The sets of one element; all elements of a GROUP BY are combined with each other."""
    match node:
        case exp.GroupingSets():
            for item in node.expressions:
                yield from _sets(item)
        case exp.Rollup():
            units = [_unit(item) for item in node.expressions]
            for size in range(len(units), -1, -1):
                yield _joined(units[:size])
        case exp.Cube():
            units = [_unit(item) for item in node.expressions]
            for size in range(len(units), -1, -1):
                yield from (_joined(chosen) for chosen in combinations(units, size))
        case _:
            yield _unit(node)


def _unit(node: exp.Expr) -> list[exp.Expr]:
    """What stands together, `(a, b)`, or alone."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this if isinstance(node, exp.Paren) else node]


def _joined(units: Sequence[list[exp.Expr]]) -> list[exp.Expr]:
    return [item for unit in units for item in unit]
