"""A join of two drafted tables to start from: its kind, its keys, and a table for its results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from spark_jobs.api.text import interval_text, quoted
from spark_jobs.errors import RejoinError
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from spark_jobs.sql.types.data_types import INTEGERS, DataType
from spark_jobs.table.columns import Column, instant_ms
from spark_jobs.table.ddl import connection, options_text, type_sql, wrapped
from spark_jobs.table.draft import TableDraft
from spark_jobs.table.event_time import duration_text, quantile_of, rounded_up_ms

JoinKind: TypeAlias = Literal["temporal", "interval", "regular"]

_KEY_WORDS = ("id", "key", "code", "number", "no", "sku", "uuid")
_NUMBERS = (*INTEGERS, "DECIMAL")
_UNKNOWN_BOUND_MS = 3_600_000
_ZONE = "TIMESTAMP(3) METADATA"


@dataclass(frozen=True, slots=True)
class JoinSide:
    draft: TableDraft
    name: str

    @property
    def columns(self) -> dict[str, Column]:
        return {column.name: column for column in self.draft.columns}

    @property
    def time_type(self) -> str | None:
        """TIMESTAMP or TIMESTAMP_LTZ, the type of the event time."""
        time = self.draft.time
        if time is None:
            return None
        if time.declaration is None:
            return self.columns[time.name].type.name
        return "TIMESTAMP" if time.declaration.startswith(_ZONE) else "TIMESTAMP_LTZ"


@dataclass(frozen=True, slots=True)
class Equality:
    """Columns of the left and the right side that are equal, and why they are thought to be."""

    pairs: tuple[tuple[str, str], ...]
    note: str

    def right_covers(self, names: Sequence[str]) -> bool:
        return bool(names) and set(names) <= {right for _, right in self.pairs}


@dataclass(frozen=True, slots=True)
class Join:
    kind: JoinKind
    left: JoinSide
    right: JoinSide
    on: Equality


def joined(first: JoinSide, second: JoinSide) -> Join | None:
    """The join that two tables suggest; None if no columns fit.

    A table that is keyed by the columns of the join is the right side: it is looked up, as of the
    left row's time where both have one. Two append-only tables are joined within an interval.
    """
    found = [
        Join("regular", left, right, on)
        for left, right in ((first, second), (second, first))
        if (on := equality(left, right)) is not None
    ]
    if not found:
        return None
    join = next((j for j in found if j.on.right_covers(j.right.draft.key)), found[0])
    return replace(join, kind=_kind(join))


def _kind(join: Join) -> JoinKind:
    left, right = join.left.draft, join.right.draft
    if left.time is None or right.time is None or left.changes != "append":
        return "regular"
    if right.changes == "append":
        return "interval"
    return "temporal" if join.on.right_covers(right.key) else "regular"


def with_equal_times(join: Join) -> Join:
    """A temporal join compares times of one type: the versions take the left side's."""
    time = join.right.draft.time
    wanted, found = join.left.time_type, join.right.time_type
    if join.kind != "temporal" or wanted == found or time is None or time.declaration is None:
        return join
    declaration = time.declaration.replace("TIMESTAMP_LTZ(3)", "TIMESTAMP(3)")
    note = "as TIMESTAMP in UTC, because the other table's event time is one"
    changed = replace(time, declaration=declaration, notes=(*time.notes, note))
    draft = replace(join.right.draft, time=changed)
    return replace(join, right=replace(join.right, draft=draft))


def equality(left: JoinSide, right: JoinSide) -> Equality | None:
    """Columns by which rows of the two sides belong together: the right side's key if the left has
    columns for it, else the columns of the same name that are named as keys are."""
    if right.draft.key:
        pairs = [_reference(left, right, name) for name in right.draft.key]
        known = tuple(pair for pair in pairs if pair is not None)
        if len(known) == len(pairs):
            return Equality(known, f"the right side's key; {_overlap(left, right, known)}")
    shared = [
        n for n, c in left.columns.items() if n in right.columns and _fit(c, right.columns[n])
    ]
    named = [name for name in shared if _names_a_key(name)]
    ranked = sorted(named or shared, key=lambda n: -_matches(left, right, n, n)[0])
    if not ranked:
        return None
    pair = ((ranked[0], ranked[0]),)
    return Equality(pair, f"columns of one name; {_overlap(left, right, pair)}")


def _reference(left: JoinSide, right: JoinSide, key: str) -> tuple[str, str] | None:
    """The left column that refers to a key column of the right side: `customer_id` to `id`."""
    singular = right.name.removesuffix("s")
    for name in (key, f"{singular}_{key}", f"{right.name}_{key}", f"{singular}{key.title()}"):
        if name in left.columns and _fit(left.columns[name], right.columns[key]):
            return name, key
    return None


def _fit(left: Column, right: Column) -> bool:
    kinds = {left.type.name, right.type.name}
    is_plain = left.unit is None and right.unit is None
    return is_plain and (kinds <= set(_NUMBERS) or (len(kinds) == 1 and kinds <= {"STRING"}))


def _names_a_key(name: str) -> bool:
    return name.lower().rpartition("_")[2] in _KEY_WORDS or name.endswith(("Id", "Key", "ID"))


def _matches(left: JoinSide, right: JoinSide, name: str, other: str) -> tuple[int, int]:
    """Distinct left values of the sample, and how many of them the right sample has."""
    ours = {_hashable(row.get(name)) for row in left.draft.rows} - {None}
    theirs = {_hashable(row.get(other)) for row in right.draft.rows}
    return len(ours & theirs), len(ours)


def _overlap(left: JoinSide, right: JoinSide, pairs: Sequence[tuple[str, str]]) -> str:
    counts = [_matches(left, right, *pair) for pair in pairs]
    return ", ".join(
        f"{found} of {known} sampled values of {name} are in the other sample"
        for (found, known), (name, _) in zip(counts, pairs, strict=True)
    )


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | bytes) else None if value is None else str(value)


def render_join(tables: str, join: Join, properties: Mapping[str, str], quantile: float) -> str:
    """The sink's CREATE TABLE and the INSERT. `tables`: the statements of the two tables."""
    lines = [*_zone(join), *_explained(join, quantile)]
    sink = f"{join.left.name}_{join.right.name}"
    lines += _sink(join, sink, properties)
    lines += ["", *_insert(join, sink, quantile)]
    text = "\n".join(lines)
    try:
        plan(bind(f"{tables}\n{text}"))
    except RejoinError as refused:
        text = "\n".join([*wrapped(f"To be mended by hand: {refused}"), text])
    return text


def no_join(first: JoinSide, second: JoinSide) -> str:
    sides = f"{first.name} and {second.name}"
    return "\n".join(wrapped(f"No join: {sides} have no columns of one name and kind."))


def _zone(join: Join) -> list[str]:
    declared = [side.draft.time.declaration for side in (join.left, join.right) if side.draft.time]
    shifts = any(text is not None and text.startswith(_ZONE) for text in declared)
    return ["SET 'table.local-time-zone' = 'UTC';", ""] if shifts else []


def _explained(join: Join, quantile: float) -> Iterator[str]:
    left, right = join.left.name, join.right.name
    match join.kind:
        case "temporal":
            why = f"each row of {left} with the version of {right} at its own time"
        case "interval":
            note = _bound_note(join, quantile)
            why = f"both only grow: rows whose times are near each other. {note}"
        case _:
            why = f"each row of {left} with the current row of {right}; results are corrected"
    yield from wrapped(f"A {join.kind} join: {why}.")
    yield from wrapped(f"Joined by {join.on.note}.")


def _outputs(join: Join) -> list[tuple[str, DataType, str]]:
    """Name, type and expression of each result column; the right side's columns of ON are left out.

    A row without a match has NULL in the right side's columns.
    """
    of_on = {right for _, right in join.on.pairs}
    found = [(c.name, c.type, f"l.{quoted(c.name)}") for c in join.left.draft.columns]
    taken = {name for name, _, _ in found}
    for column in join.right.draft.columns:
        if column.name in of_on:
            continue
        name = column.name if column.name not in taken else f"{join.right.name}_{column.name}"
        taken.add(name)
        found.append((name, column.type, f"r.{quoted(column.name)}"))
    return found


def _sink(join: Join, name: str, properties: Mapping[str, str]) -> list[str]:
    key = _result_key(join)
    entries = [f"{quoted(n)} {type_sql(t)}" for n, t, _ in _outputs(join)]
    options = {"connector": "kafka", **connection(name, properties), "format": "json"}
    if _updates(join) and key:
        entries.append(f"PRIMARY KEY ({', '.join(map(quoted, key))}) NOT ENFORCED")
        del options["format"]
        options |= {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
    elif _updates(join):
        options["format"] = "debezium-json"
    body = ",\n".join(f"  {entry}" for entry in entries)
    return [f"CREATE TABLE {quoted(name)} (", body, ") WITH (", *options_text(options), ");"]


def _updates(join: Join) -> bool:
    """Whether results are corrected later; inserts alone give inserts in an inner join."""
    changes = {join.left.draft.changes, join.right.draft.changes}
    return join.kind == "regular" and changes != {"append"}


def _result_key(join: Join) -> tuple[str, ...]:
    left, right = join.left.draft.key, join.right.draft.key
    return left if left and join.on.right_covers(right) else ()


def _insert(join: Join, sink: str, quantile: float) -> Iterator[str]:
    yield f"INSERT INTO {quoted(sink)}"
    selected = [
        expression if expression.endswith(f".{quoted(name)}") else f"{expression} AS {quoted(name)}"
        for name, _, expression in _outputs(join)
    ]
    yield "SELECT\n" + ",\n".join(f"  {text}" for text in selected)
    yield f"FROM {quoted(join.left.name)} AS l"
    outer = "LEFT JOIN" if join.kind == "temporal" or _updates(join) else "JOIN"
    as_of = ""
    if join.kind == "temporal" and join.left.draft.time is not None:
        as_of = f" FOR SYSTEM_TIME AS OF l.{quoted(join.left.draft.time.name)}"
    yield f"{outer} {quoted(join.right.name)}{as_of} AS r"
    equal = [f"l.{quoted(a)} = r.{quoted(b)}" for a, b in join.on.pairs]
    if join.kind == "interval":
        equal.append(_between(join, quantile))
    yield "  ON " + " AND ".join(equal) + ";"


def _between(join: Join, quantile: float) -> str:
    left, right = join.left.draft.time, join.right.draft.time
    if left is None or right is None:
        raise ValueError("an interval join has two event times")
    before, after = _bounds(join, quantile)[:2]
    mine, theirs = f"l.{quoted(left.name)}", f"r.{quoted(right.name)}"
    lower, upper = (interval_text(ms * 1_000) for ms in (before, after))
    return f"{theirs} BETWEEN {mine} - {lower} AND {mine} + {upper}"


def _bounds(join: Join, quantile: float) -> tuple[int, int, int]:
    """How far the right row may be before and after the left one, and the pairs that say so."""
    found = _differences(join)
    if not found:
        return _UNKNOWN_BOUND_MS, _UNKNOWN_BOUND_MS, 0
    before = quantile_of([max(-ms, 0.0) for ms in found], quantile)
    after = quantile_of([max(ms, 0.0) for ms in found], quantile)
    return rounded_up_ms(before), rounded_up_ms(after), len(found)


def _bound_note(join: Join, quantile: float) -> str:
    before, after, pairs = _bounds(join, quantile)
    if not pairs:
        return (
            f"The interval of {duration_text(_UNKNOWN_BOUND_MS)} is a guess: no sampled rows match"
        )
    return (
        f"In {quantile * 100:.6g} % of {pairs} sampled pairs the right row is at most "
        f"{duration_text(before)} earlier and at most {duration_text(after)} later"
    )


def _differences(join: Join) -> list[float]:
    """Per sampled left row, the time to the nearest right row with the same key, milliseconds."""
    times = [_time_column(side) for side in (join.left, join.right)]
    if times[0] is None or times[1] is None:
        return []
    by_key: dict[tuple[Any, ...], list[float]] = {}
    for row in join.right.draft.rows:
        at = instant_ms(times[1], row.get(times[1].name))
        if at is not None:
            by_key.setdefault(_key(row, [b for _, b in join.on.pairs]), []).append(at)
    found = []
    for row in join.left.draft.rows:
        at = instant_ms(times[0], row.get(times[0].name))
        others = by_key.get(_key(row, [a for a, _ in join.on.pairs]), [])
        if at is not None and others:
            found.append(min((other - at for other in others), key=abs))
    return found


def _key(row: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(_hashable(row.get(name)) for name in names)


def _time_column(side: JoinSide) -> Column | None:
    """The column that the event time is, or is computed from."""
    time = side.draft.time
    if time is None:
        return None
    return side.columns.get(time.name) or side.columns.get(time.name.removesuffix("_instant"))
