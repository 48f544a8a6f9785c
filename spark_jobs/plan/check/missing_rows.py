"""NULL that an outer join puts where its sink takes none, which would end the job.

A column that its own table declares nullable may well hold no NULL, so there is no word about it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import assert_never

from spark_jobs.plan.nodes.parts import Advice, and_words
from spark_jobs.sql.catalog import TableColumn
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    JoinType,
    Logical,
    NoRows,
    Position,
    Project,
    Rank,
    RowNumber,
    Scan,
    Sink,
    Union,
    Unnest,
    nodes,
)
from spark_jobs.sql.types.data_types import INTEGERS
from spark_jobs.sql.types.expr import Call, Column, Expr, FieldAccess, conjuncts

# calls that need not be NULL where an argument is
_LENIENT = ("AND", "OR", "CASE", "IF", "IN", "CONCAT_WS")
_INSTEAD = {
    **dict.fromkeys((*INTEGERS, "DECIMAL", "FLOAT", "DOUBLE"), "0"),
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR"), "'none'"),
    "BOOLEAN": "FALSE",
    "DATE": "DATE '1970-01-01'",
    "TIMESTAMP": "TIMESTAMP '1970-01-01 00:00:00'",
}


@dataclass(frozen=True, slots=True)
class Missing:
    """A side of an outer join, where the other side's row has found none."""

    kind: JoinType
    position: Position
    tables: tuple[str, ...]


Origins = frozenset[Missing]
_NONE: Origins = frozenset()


def null_columns(optimized: Logical) -> Iterator[Advice]:
    """What would end a query with NULL_IN_NOT_NULL_COLUMN, a warning for each missing side."""
    if not isinstance(optimized, Sink):
        return
    found: dict[Missing, list[int]] = {}
    written = [c for c in optimized.table.columns if c.writable]
    for i, made in enumerate(_origins(optimized.input)):
        if made and not written[i].type.nullable:
            first = min(made, key=lambda m: (m.position.line, m.position.column))
            found.setdefault(first, []).append(i)
    for missing, places in found.items():
        names = [written[i].name for i in places]
        are, them = ("is", "it") if len(names) == 1 else ("are", "them")
        yield Advice(
            f"{and_words(names)} of {optimized.table.name} {are} NOT NULL, but the "
            f"{missing.kind.upper()} JOIN makes {them} NULL where it finds no row of "
            f"{' or '.join(missing.tables)}: such a row ends the job (NULL_IN_NOT_NULL_COLUMN)",
            tuple(chain.from_iterable(_remedies(optimized, written[i], i) for i in places)),
            is_warning=True,
        )


def _remedies(sink: Sink, target: TableColumn, index: int) -> Iterator[str]:
    """Rows of one made-up key would replace each other, so a key is left out instead."""
    value = _name(sink.input, index)
    instead = _INSTEAD.get(target.type.name)
    if instead is not None and target.name not in sink.table.primary_key:
        alias = "" if value == target.name else f" AS {target.name}"
        yield f"COALESCE({value or '...'}, {instead}){alias}  -- in the SELECT list"
    if value is not None:
        yield f"WHERE {value} IS NOT NULL  -- leaves such rows out"


def _origins(node: Logical) -> list[Origins]:
    """The sides whose missing row makes a field NULL, for each field."""
    match node:
        case Scan() | NoRows():
            return [_NONE] * len(node.fields)
        case Filter(input=inner, condition=condition):
            below = _origins(inner)
            return _without(below, _refused(condition, below))
        case Project(input=inner, exprs=exprs):
            below = _origins(inner)
            return [_made_null(e, below) for e in exprs]
        case Aggregate(input=inner, keys=keys, calls=calls):
            below = _origins(inner)
            of_calls = [
                _made_null(c.argument, below) if c.argument and c.type.nullable else _NONE
                for c in calls
            ]
            return [*(_made_null(k, below) for k in keys), *of_calls]
        case Union(inputs=inputs):
            return [_NONE.union(*made) for made in zip(*map(_origins, inputs), strict=True)]
        case Join():
            return _joined(node)
        # a row number comes as one more field, as elements of a collection do
        case Deduplicate() | RowNumber() | Rank() | Unnest() | Sink():
            below = _origins(node.input)
            return [*below, *[_NONE] * (len(node.fields) - len(below))]
        case _:
            assert_never(node)


def _joined(join: Join) -> list[Origins]:
    left, right = _origins(join.left), _origins(join.right)
    refused = _NONE if join.condition is None else _refused(join.condition, [*left, *right])
    if join.kind in ("inner", "semi", "right"):  # a left row is there by the condition alone
        left = _without(left, refused)
    if join.kind in ("inner", "left"):
        right = _without(right, refused)
    if join.kind in ("right", "full"):
        left = [made | {_missing(join, join.left)} for made in left]
    if join.kind in ("left", "full"):
        right = [made | {_missing(join, join.right)} for made in right]
    return left if join.kind in ("semi", "anti") else left + right


def _missing(join: Join, side: Logical) -> Missing:
    tables = dict.fromkeys(scan.table.name for scan in _scans(side))
    return Missing(join.kind, join.position, tuple(tables))


def _without(fields: Sequence[Origins], refused: Origins) -> list[Origins]:
    return [made - refused for made in fields]


def _refused(condition: Expr, fields: Sequence[Origins]) -> Origins:
    """The missing sides with which the condition does not hold."""
    return _NONE.union(*(_refused_by(c, fields) for c in conjuncts(condition)))


def _refused_by(predicate: Expr, fields: Sequence[Origins]) -> Origins:
    match predicate:
        case Call(op="IS NOT NULL", args=(tested,)):
            return _made_null(tested, fields)
        case Call(op="AND", args=args):
            return _NONE.union(*(_refused_by(a, fields) for a in args))
        case Call(op="OR", args=args):
            return frozenset.intersection(*(_refused_by(a, fields) for a in args))
        case _:
            return _made_null(predicate, fields)


def _made_null(expr: Expr, fields: Sequence[Origins]) -> Origins:
    """The same for an expression over fields of these origins."""
    match expr:
        case Column(index=index):
            return fields[index]
        case FieldAccess(row=row):
            return _made_null(row, fields)
        case Call(op="COALESCE", args=args):
            return frozenset.intersection(*(_made_null(a, fields) for a in args))
        case Call(op=op, args=args) if expr.type.nullable and op not in _LENIENT:
            return _NONE.union(*(_made_null(a, fields) for a in args))
        case _:
            return _NONE


def _name(select: Logical, index: int) -> str | None:
    """A field as the query can say it: by its table where another one has the name too."""
    name, table = _read(select, index)
    if table is None:
        return None
    names = (f.name for scan in _scans(select) for f in scan.fields)
    return name if list(names).count(name) == 1 else f"{table}.{name}"


def _read(node: Logical, index: int) -> tuple[str, str | None]:
    """The column of a table that a field is, and the table; None for what is computed."""
    match node:
        case Scan(table=table):
            return node.fields[index].name, table.name
        case Project(input=inner, exprs=exprs):
            expr = exprs[index]
            while isinstance(expr, Call) and expr.op == "CAST":
                expr = expr.args[0]
            return _read(inner, expr.index) if isinstance(expr, Column) else ("", None)
        case Join(left=left, right=right):
            at = index - len(left.fields)
            return _read(left, index) if at < 0 else _read(right, at)
        case Union() | Aggregate() | NoRows():
            return "", None
        case RowNumber() | Rank() | Unnest() if index >= len(node.input.fields):
            return "", None
        case Filter() | Deduplicate() | RowNumber() | Rank() | Unnest() | Sink():
            return _read(node.input, index)
        case _:
            assert_never(node)


def _scans(node: Logical) -> list[Scan]:
    return [found for found in nodes(node) if isinstance(found, Scan)]
