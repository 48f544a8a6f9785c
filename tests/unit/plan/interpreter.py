"""What a logical plan means over plain lists of rows; it shares no code with the rules.

A temporal join takes, of the right rows that meet the equalities of ON, the newest that is not
newer than the left row; only that one is held against the rest of ON.
"""

from collections.abc import Sequence
from itertools import product

from spark_jobs.sql.logical import (
    Aggregate,
    AggregateCall,
    Deduplicate,
    Filter,
    Join,
    Logical,
    Project,
    RowNumber,
    Scan,
    Sink,
    Union,
)
from spark_jobs.sql.types.expr import Call, Column, Expr, Literal

Row = tuple[int | None, ...]
Data = dict[str, list[Row]]

COMPARISONS = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}


def evaluate(expr: Expr, row: Row) -> int | bool | None:
    match expr:
        case Column(index=index):
            return row[index]
        case Literal(value=value):
            assert value is None or isinstance(value, int)
            return value
        case Call(op=op, args=args):
            return apply(op, [evaluate(a, row) for a in args])
    raise NotImplementedError(expr)


def apply(op: str, values: Sequence[int | bool | None]) -> int | bool | None:
    match op:
        case "AND":
            return False if False in values else None if None in values else True
        case "OR":
            return True if True in values else None if None in values else False
        case "IS NULL":
            return values[0] is None
        case "IS NOT NULL":
            return values[0] is not None
        case "IS NOT DISTINCT FROM":
            return values[0] == values[1]
        case "+":
            return None if None in values else values[0] + values[1]  # type: ignore[operator]
    return None if None in values else COMPARISONS[op](*values)


def run(node: Logical, data: Data) -> list[Row]:
    match node:
        case Scan(table=table):
            return data[table.name]
        case Filter(input=inner, condition=condition):
            return [row for row in run(inner, data) if evaluate(condition, row) is True]
        case Project(input=inner, exprs=exprs):
            return [tuple(evaluate(e, row) for e in exprs) for row in run(inner, data)]
        case Sink(input=inner):
            return run(inner, data)
        case Union(inputs=inputs):
            return [row for i in inputs for row in run(i, data)]
        case Join():
            return run_join(node, data)
        case Aggregate():
            return run_aggregate(node, data)
        case RowNumber(input=inner, partition=partition, order=((by, descending, _),)):
            ranked = groups(
                sorted(run(inner, data), key=lambda r: at(r, by, descending)), partition
            )
            return [(*row, n) for rows in ranked for n, row in enumerate(rows, 1)]
        case Deduplicate(input=inner, partition=partition, order=by, keep=keep):
            last = keep == "last"
            found = groups(sorted(run(inner, data), key=lambda r: at(r, by, last)), partition)
            return [rows[0] for rows in found]
    raise NotImplementedError(node)


def at(row: Row, position: int, descending: bool) -> int:
    time = row[position]
    assert time is not None
    return -time if descending else time


def groups(rows: list[Row], by: Sequence[int]) -> list[list[Row]]:
    found: dict[Row, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[i] for i in by), []).append(row)
    return list(found.values())


def run_join(join: Join, data: Data) -> list[Row]:
    left, right = run(join.left, data), run(join.right, data)
    if join.as_of is not None:
        return run_temporal(join, left, right)
    keep = lambda row: join.condition is None or evaluate(join.condition, row) is True  # noqa: E731
    matched = [(a, b) for a, b in product(left, right) if keep(a + b)]
    if join.kind in ("semi", "anti"):
        return [a for a in left if any(keep(a + b) for b in right) == (join.kind == "semi")]
    rows = [a + b for a, b in matched]
    if join.kind in ("left", "full"):
        nothing: Row = (None,) * len(join.right.fields)
        rows += [a + nothing for a in left if not any(keep(a + b) for b in right)]
    if join.kind in ("right", "full"):
        nothing = (None,) * len(join.left.fields)
        rows += [nothing + b for b in right if not any(keep(a + b) for a in left)]
    return rows


def run_aggregate(node: Aggregate, data: Data) -> list[Row]:
    found: dict[Row, list[Row]] = {} if node.keys else {(): []}
    for row in run(node.input, data):
        found.setdefault(tuple(evaluate(k, row) for k in node.keys), []).append(row)
    return [key + tuple(called(c, rows) for c in node.calls) for key, rows in found.items()]


def called(call: AggregateCall, rows: list[Row]) -> int | None:
    if call.argument is None:
        return len(rows)
    values = [v for v in (evaluate(call.argument, row) for row in rows) if v is not None]
    if call.function == "COUNT":
        return len(values)
    return (sum if call.function == "SUM" else max)(values) if values else None


def run_temporal(join: Join, left: list[Row], right: list[Row]) -> list[Row]:
    """The time is the last column of the table on the right, and a column of the left one."""
    assert isinstance(join.as_of, Column)
    on = (
        join.condition.args
        if isinstance(join.condition, Call) and join.condition.op == "AND"
        else (() if join.condition is None else (join.condition,))
    )
    width = len(join.left.fields)
    lookup = [e for e in on if is_lookup(e, width)]
    time = next(i for i, f in enumerate(join.right.fields) if f.time == "rowtime")
    rows: list[Row] = []
    for a in left:
        now = at(a, join.as_of.index, False)
        versions = [b for b in right if all(evaluate(e, a + b) is True for e in lookup)]
        past = [b for b in versions if at(b, time, False) <= now]
        newest = max(past, key=lambda b: at(b, time, False), default=None)
        if newest is not None and all(evaluate(e, a + newest) is True for e in on):
            rows.append(a + newest)
        elif join.kind == "left":
            rows.append(a + (None,) * len(join.right.fields))
    return rows


def is_lookup(expr: Expr, width: int) -> bool:
    """An equality between a column of each side."""
    match expr:
        case Call(op="=", args=(Column(index=a), Column(index=b))):
            return (a < width) != (b < width)
        case _:
            return False
