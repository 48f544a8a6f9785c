"""What a plan makes of the given rates: rows, keys and bytes at each operator, per second.

Sizes of stored rows are those of plan/check/state_size.py. Keys count as equally frequent.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from spark_jobs.plan.check.state_size import SideFormula, feeds, packed_bytes, side_formulas
from spark_jobs.plan.nodes.physical import (
    BUILD_SIDE,
    Aggregate,
    Deduplicate,
    IntervalJoin,
    JoinInput,
    KafkaScan,
    KafkaSink,
    KeyChanges,
    LookupJoin,
    Machine,
    MultiJoin,
    Normalize,
    Project,
    QueryPlan,
    Rank,
    RegularJoin,
    Rekey,
    Results,
    SinkMaterializer,
    Stateful,
    TemporalJoin,
    Unnest,
)
from spark_jobs.sizing.coefficients import CostKind
from spark_jobs.sizing.given import Given
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.types.data_types import DataType, RowField

DAY_S = 86_400.0
_MS = 1000.0
Root: TypeAlias = KafkaSink | Results


@dataclass(frozen=True, slots=True)
class InputLoad:
    """One input of an operator. `keys` is None where every row may have a key of its own.

    `packed_bytes` are of row and join key, `record_bytes` of a Kafka record (0 for rows of another
    operator), `stored_bytes` of a row in the state, with its key.
    """

    name: str
    table: str | None
    rate: float
    keys: float | None
    packed_bytes: float
    record_bytes: float
    stored_bytes: float

    def touched(self, epoch_s: float, scale: float) -> float:
        """How many different keys the rows of an epoch have."""
        return distinct(self.rate * scale * epoch_s, self.keys)


@dataclass(frozen=True, slots=True)
class StateLoad:
    """The rows that an operator keeps of one input; `grows` without end if nothing limits them.

    Rows that grow without end are those of the first day.
    """

    side: str
    rows: float
    bytes_each: float
    grows: bool
    formula: str

    @property
    def bytes(self) -> float:
        return self.rows * self.bytes_each


@dataclass(frozen=True, slots=True)
class OperatorLoad:
    """One stateful operator, or a scan whose rows go straight to the sink, which has no state.

    `result_keys`: its results of an epoch are at most one per key; None if each of `result_rate`
    rows is a result. `is_measured`: runs of the benchmark have such an operator.
    """

    id: str
    kind: CostKind
    is_measured: bool
    is_stateful: bool
    inputs: tuple[InputLoad, ...]
    state: tuple[StateLoad, ...]
    result_rate: float
    result_keys: float | None

    def results(self, epoch_s: float, scale: float) -> float:
        """Results of an epoch."""
        return distinct(self.result_rate * scale * epoch_s, self.result_keys)


@dataclass(frozen=True, slots=True)
class QueryLoad:
    """One INSERT, inputs before the operators that read them; `last` feed the sink."""

    name: str
    operators: tuple[OperatorLoad, ...]
    last: tuple[OperatorLoad, ...]
    result_bytes: float
    has_exchange: bool


def distinct(rows: float, keys: float | None) -> float:
    """How many keys are expected among `rows` that are drawn from `keys`.

    >>> distinct(10, None), round(distinct(1000, 10)), round(distinct(10, 1e9))
    (10, 10, 10)
    """
    if keys is None or keys <= 0:
        return rows
    return -keys * math.expm1(-rows / keys)


def tables_read(plans: Sequence[QueryPlan]) -> set[str]:
    """The tables that the queries read."""
    return {scan.table for plan in plans for scan in _scans(plan.root)}


def tables_with_keys(plans: Sequence[QueryPlan]) -> set[str]:
    """The tables whose number of keys decides how large the state becomes."""
    found = set()
    for plan in plans:
        for node in _operators(plan.root):
            for formula in side_formulas(node):
                for read in feeds(node, formula):
                    if isinstance(read, KafkaScan) and _is_kept_by_key(formula, read):
                        found.add(read.table)
    return found


def query_load(plan: QueryPlan, given: Given, tables: Mapping[str, Table]) -> QueryLoad:
    """The load of one query; `tables` are those that the job declares."""
    walk = _Walk(given, tables)
    last = tuple(walk.project(project) for project in plan.root.inputs)
    sink = plan.root if isinstance(plan.root, KafkaSink) else None
    schema = plan.root.inputs[0].schema if sink is None else sink.schema
    return QueryLoad(
        plan.name,
        tuple(walk.found),
        last,
        packed_bytes(schema, sample(schema, given.text_size(None))),
        sink is not None and sink.exchange,
    )


def sample(schema: DataType, text_bytes: float) -> list[Any]:
    """A row of typical values, as the kernel's JSON of rows has them."""
    return [_typical(field.type, text_bytes) for field in schema.fields]


def _typical(column: DataType, text_bytes: float) -> Any:
    match column.name:
        case "STRING":
            return "x" * round(text_bytes)
        case "BYTES":  # base64
            return "x" * math.ceil(text_bytes * 4 / 3)
        case "ROW":
            return {f.name: _typical(f.type, text_bytes) for f in column.fields}
        case "ARRAY" | "MAP":
            return ["x" * round(text_bytes)]
        case _:
            return 0


def _is_kept_by_key(formula: SideFormula, read: KafkaScan) -> bool:
    return formula.grows == "keys" or (formula.grows == "rows" and read.changelog != "append")


def _scans(root: Root) -> Iterator[KafkaScan]:
    for node in _operators(root):
        yield from (read for read in node.inputs if isinstance(read, KafkaScan))
    yield from (p.input for p in root.inputs if isinstance(p.input, KafkaScan))


def _operators(root: Root) -> Iterator[Stateful]:
    below = [p.input for p in root.inputs if isinstance(p.input, Stateful)]
    for node in below:
        yield node
        below.extend(read.input for read in node.inputs if isinstance(read, Rekey))


class _Walk:
    """Collects the loads of a tree, inputs first."""

    def __init__(self, given: Given, tables: Mapping[str, Table]) -> None:
        self.found: list[OperatorLoad] = []
        self._given = given
        self._tables = tables

    def project(self, project: Project) -> OperatorLoad:
        read = project.input
        if isinstance(read, Stateful):
            return self._operator(read)
        scan = self._input(read, (), DataType("ROW"))
        name = read.id or read.table
        load = OperatorLoad(name, "regular", False, False, (scan,), (), scan.rate, None)
        self.found.append(load)
        return load

    def _operator(self, node: Stateful) -> OperatorLoad:
        formulas = tuple(side_formulas(node))
        key = _key_type(node.machine)
        inputs, below = [], []
        for read in node.inputs:
            if isinstance(read, Rekey):
                below.append(self._operator(read.input))
                inputs.append(self._rekeyed(read, below[-1], node, formulas, key))
            else:
                inputs.append(self._input(read, _of(node, formulas, read), key))
        state = tuple(self._state(node, formula, inputs, below) for formula in formulas)
        kind, is_measured = _cost(node.machine)
        rate, keys = _results(node, inputs)
        load = OperatorLoad(node.id, kind, is_measured, True, tuple(inputs), state, rate, keys)
        self.found.append(load)
        return load

    def _input(self, scan: KafkaScan, formulas: Sequence[SideFormula], key: DataType) -> InputLoad:
        given, table = self._given, scan.table
        record_bytes = given.record_bytes.get(table) or self._declared_bytes(self._tables[table])
        return InputLoad(
            table,
            table,
            given.rows_per_second[table],
            given.keys.get(table),
            self._packed(scan.schema, table) + self._packed(key, table),
            record_bytes,
            self._stored(scan.schema, formulas, key, table),
        )

    def _rekeyed(
        self,
        read: Rekey,
        below: OperatorLoad,
        node: Stateful,
        formulas: Sequence[SideFormula],
        key: DataType,
    ) -> InputLoad:
        epoch_s = self._given.epoch_s
        return InputLoad(
            below.id,
            None,
            below.results(epoch_s, 1.0) / epoch_s,
            below.result_keys,
            self._packed(read.schema, None) + self._packed(key, None),
            0.0,
            self._stored(read.schema, _of(node, formulas, read), key, None),
        )

    def _state(
        self,
        node: Stateful,
        formula: SideFormula,
        inputs: Sequence[InputLoad],
        below: Sequence[OperatorLoad],
    ) -> StateLoad:
        [(read, load), *_] = [
            (read, load)
            for read, load in zip(node.inputs, inputs, strict=True)
            if read in feeds(node, formula)
        ]
        each = load.stored_bytes
        rows = math.inf
        if formula.grows == "window" or formula.kept_ms:
            rows = load.rate * formula.kept_ms / _MS
        if formula.grows != "window" and isinstance(read, Rekey):
            rows = min(rows, _kept_below(below))
        elif isinstance(read, KafkaScan) and _is_kept_by_key(formula, read):
            rows = min(rows, load.keys or math.inf)
        grows = math.isinf(rows)
        rows = load.rate * DAY_S if grows else rows
        return StateLoad(f"{node.id} {formula.side}", rows, each, grows, formula.formula)

    def _stored(
        self, schema: DataType, formulas: Sequence[SideFormula], key: DataType, table: str | None
    ) -> float:
        """Bytes of a stored row: by its formula, or packed where no formula is known."""
        if not formulas:
            return self._packed(schema, table) + self._packed(key, table)
        [formula, *_] = formulas
        row = sample(schema, self._given.text_size(table))
        return sum(formula.row_bytes(schema, [row])) + formula.beside

    def _packed(self, schema: DataType, table: str | None) -> float:
        row = sample(schema, self._given.text_size(table))
        return packed_bytes(schema, row) if schema.fields else 0.0

    def _declared_bytes(self, table: Table) -> float:
        """A record of all columns that the table declares."""
        stored = [column for column in table.columns if column.kind == "physical"]
        fields = tuple(RowField(column.name, column.type) for column in stored)
        return self._packed(DataType("ROW", fields=fields), table.name)


def _of(
    node: Stateful, formulas: Sequence[SideFormula], read: JoinInput
) -> tuple[SideFormula, ...]:
    return tuple(formula for formula in formulas if read in feeds(node, formula))


def _kept_below(below: Sequence[OperatorLoad]) -> float:
    """An operator has at most as many result rows as it keeps rows of its larger input."""
    rows = [side for operator in below for side in operator.state]
    if not rows or any(side.grows for side in rows):
        return math.inf
    return max(side.rows for side in rows)


def _key_type(machine: Machine) -> DataType:
    match machine:
        case RegularJoin() | IntervalJoin() | TemporalJoin() | LookupJoin():
            return machine.pair.key
        case MultiJoin(key=key) | Aggregate(key=key):
            return key
        case Normalize() | KeyChanges() | Deduplicate() | Rank() | SinkMaterializer() | Unnest():
            return DataType("ROW")
        case _:
            assert_never(machine)


def _cost(machine: Machine) -> tuple[CostKind, bool]:
    """Whose costs per row an operator has, and whether just such an operator was measured."""
    match machine:
        case RegularJoin():
            return "regular", True
        case IntervalJoin(time=time, changes=changes, early_fire_ms=early_ms):
            return "interval", time == "event" and not changes and early_ms is None
        case TemporalJoin(time=time):
            return "temporal", time == "event"
        case _:
            return "regular", False


def _results(node: Stateful, inputs: Sequence[InputLoad]) -> tuple[float, float | None]:
    """The rate of result rows, and of how many keys an epoch has at most one result."""
    total = sum(load.rate for load in inputs)
    match node.machine:
        case RegularJoin() | MultiJoin():
            is_by_key = all(s.layout == "join-key-contains-unique-key" for s in node.sides)
            keys = [load.keys for load in inputs]
            known = [count for count in keys if count is not None]
            return total, max(known) if is_by_key and len(known) == len(keys) else None
        case TemporalJoin() | LookupJoin():
            return _rate_of_side(node, inputs, 1 - BUILD_SIDE), None
        case IntervalJoin(join_type="inner" | "left"):
            return _rate_of_side(node, inputs, 0), None
        case IntervalJoin():
            return max(load.rate for load in inputs), None
        case _:
            return total, None


def _rate_of_side(node: Stateful, inputs: Sequence[InputLoad], side: int) -> float:
    pairs = zip(node.inputs, inputs, strict=True)
    return sum(load.rate for read, load in pairs if read.side == side)
