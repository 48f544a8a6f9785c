"""What the values of sampled records are: rows, change events, and of which encoding."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from spark_jobs.errors import FormatError
from spark_jobs.table.registered import Schemas, is_framed
from spark_jobs.table.sampling import SampledRecord, TopicSample
from spark_jobs.table.texts import csv_lines, parse_json, typed_rows

Meaning: TypeAlias = Literal["rows", "debezium", "unwrapped", "changelog", "canal", "maxwell"]
Encoding: TypeAlias = Literal["json", "connect", "json-registry", "avro", "csv"]

_OPS = frozenset("rcudtm")
_KINDS = ("+I", "-U", "+U", "-D")
_TOLERATED = 0.1  # share of records that may be of another shape
_NO_JSON = "neither JSON nor framed Avro"
_NO_FORMAT = ", which no format reads"
_DOCUMENTS = f"Debezium's change events of MongoDB{_NO_FORMAT}"


class Shape(NamedTuple):
    """How values are encoded (`connect`: JSON with Kafka Connect's schema) and what they mean."""

    encoding: Encoding
    meaning: Meaning

    def __str__(self) -> str:
        return f"{_ENCODINGS[self.encoding]}: {_MEANINGS[self.meaning]}"


_ENCODINGS: Mapping[Encoding, str] = {
    "json": "JSON",
    "connect": "JSON with Kafka Connect's schema",
    "json-registry": "JSON behind a schema id",
    "avro": "Avro with a registry's schema",
    "csv": "CSV",
}
_MEANINGS: Mapping[Meaning, str] = {
    "rows": "rows",
    "debezium": "Debezium's change events",
    "unwrapped": "rows of ExtractNewRecordState",
    "changelog": "changes with op and data",
    "canal": "Canal's changes",
    "maxwell": "Maxwell's changes",
}


@dataclass(frozen=True, slots=True)
class BinlogRecord:
    """What a record of Canal or Maxwell says beside its first row.

    `more`: its other rows. `types`: MySQL's types by column, which Canal names.
    """

    table: str
    key: tuple[str, ...]
    more: tuple[dict[str, Any], ...]
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SampledValue:
    """A decoded value. `row`: after a change, else before it; None for a TRUNCATE.

    `before` is Debezium's, and `source_ms` the time of the change in the database. `schema` is
    Kafka Connect's schema of the record.
    """

    record: SampledRecord
    shape: Shape
    row: dict[str, Any] | None
    op: str | None = None
    before: dict[str, Any] | None = None
    source_ms: int | None = None
    schema: Mapping[str, Any] | None = None
    binlog: BinlogRecord | None = None


@dataclass(frozen=True, slots=True)
class SampledValues:
    """The values of one shape, and what is said about the few that are not of it.

    `delimiter`: what separates the fields of CSV.
    """

    shape: Shape
    values: Sequence[SampledValue]
    others: Sequence[str]
    delimiter: str | None = None


def read_values(sample: TopicSample, schemas: Schemas | None) -> SampledValues:
    """Decode the values of a sample, without its tombstones.

    Raises FormatError if they cannot be read, are of several shapes, or there are none.
    """
    found: dict[Shape | str, list[SampledValue | SampledRecord]] = defaultdict(list)
    for record in sample.records:
        if record.value is None:
            continue
        value = _value(record, record.value, schemas)
        found[value.shape if isinstance(value, SampledValue) else value].append(
            value if isinstance(value, SampledValue) else record
        )
    if not found:
        raise _nothing(sample)
    first, *rest = sorted(found, key=lambda shape: -len(found[shape]))
    others = [_counted(shape, found[shape]) for shape in rest]
    if first == _NO_JSON and (lines := _csv(sample)):
        return lines
    if not isinstance(first, Shape):
        raise _undecodable(sample, first, found[first], schemas)
    if sum(len(found[shape]) for shape in rest) > _TOLERATED * sum(map(len, found.values())):
        raise FormatError(
            "SAMPLE_MIXED",
            f"topic {sample.topic} has records of several kinds: "
            f"{'; '.join([_counted(first, found[first]), *others])}",
            hint="a table reads one kind: give the others a topic of their own, or write the "
            "CREATE TABLE for one of them with 'rejoin.dead-letter.topic'",
        )
    return SampledValues(first, [v for v in found[first] if isinstance(v, SampledValue)], others)


def _csv(sample: TopicSample) -> SampledValues | None:
    """The values as lines of CSV, whose columns have no names of their own."""
    records = [record for record in sample.records if record.value is not None]
    lines = csv_lines([record.value or b"" for record in records], _TOLERATED)
    if lines is None:
        return None
    found = [(r, f) for r, f in zip(records, lines.fields, strict=True) if f is not None]
    rows = typed_rows([{f"c{i}": text for i, text in enumerate(f, 1)} for _, f in found])
    shape = Shape("csv", "rows")
    values = [SampledValue(r, shape, row) for (r, _), row in zip(found, rows, strict=True)]
    others = [r for r, f in zip(records, lines.fields, strict=True) if f is None]
    said = [_counted("no line of so many fields", others)] if others else []
    return SampledValues(shape, values, said, lines.delimiter)


def _value(record: SampledRecord, data: bytes, schemas: Schemas | None) -> SampledValue | str:
    """The decoded value, or what is wrong with it."""
    if is_framed(data):
        if schemas is None:
            return "framed with a schema id"
        try:
            return _registered(record, data, schemas)
        except ValueError:
            return "not of the schema that it names"
    try:
        value = parse_json(data)
    except ValueError:
        return _NO_JSON
    if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
        payload, schema = value["payload"], value["schema"]
        if isinstance(payload, dict) and isinstance(schema, dict):
            return _classified(record, payload, "connect", schema)
    return _classified(record, value, "json")


def _registered(record: SampledRecord, data: bytes, schemas: Schemas) -> SampledValue | str:
    """The value behind a schema id; in JSON, only rows have a format."""
    if schemas.of(data).kind == "AVRO":
        return _classified(record, schemas.read(data), "avro")
    found = _classified(record, schemas.read(data), "json-registry")
    if isinstance(found, SampledValue) and found.shape.meaning != "rows":
        return f"{found.shape}{_NO_FORMAT}"
    return found


def _classified(
    record: SampledRecord,
    value: Any,
    encoding: Encoding,
    schema: Mapping[str, Any] | None = None,
) -> SampledValue | str:
    if not isinstance(value, dict):
        return f"{_ENCODINGS[encoding]}, but no object"
    op, after, before = value.get("op"), value.get("after"), value.get("before")
    if op in _OPS and ("updateDescription" in value or isinstance(after, str)):
        return _DOCUMENTS
    if op in _OPS and ("after" in value or "before" in value):
        row = after if isinstance(after, dict) else before
        return SampledValue(
            record,
            Shape(encoding, "debezium"),
            row if isinstance(row, dict) else None,
            str(op),
            before if isinstance(before, dict) else None,
            _source_ms(value.get("source")),
            schema,
        )
    if op in _KINDS and isinstance(value.get("data"), dict):
        return SampledValue(record, Shape(encoding, "changelog"), value["data"], str(op))
    if (changes := _binlog(record, value)) is not None:
        return changes
    if "__deleted" in value or "__op" in value:
        meaning, source_ms = Shape(encoding, "unwrapped"), value.get("__source_ts_ms")
        time = source_ms if isinstance(source_ms, int) else None
        return SampledValue(record, meaning, value, source_ms=time, schema=schema)
    return SampledValue(record, Shape(encoding, "rows"), value, schema=schema)


def _binlog(record: SampledRecord, value: dict[str, Any]) -> SampledValue | None:
    """A record of Canal, whose `data` is an array, or of Maxwell; None if it is neither's."""
    op, data = value.get("type"), value.get("data")
    if not isinstance(op, str) or not {"database", "table"} <= value.keys():
        return None
    is_canal = "isDdl" in value or isinstance(data, list)
    if not is_canal and not isinstance(data, dict):
        return None
    listed = data if isinstance(data, list) else [data]
    rows = [row for row in listed if isinstance(row, dict)]
    key, types = value.get("pkNames" if is_canal else "primary_key_columns"), value.get("mysqlType")
    said = BinlogRecord(
        f"{value['database']}.{value['table']}",
        tuple(key) if isinstance(key, list) else (),
        tuple(rows[1:]),
        types if isinstance(types, dict) else {},
    )
    shape = Shape("json", "canal" if is_canal else "maxwell")
    return SampledValue(record, shape, rows[0] if rows else None, op, binlog=said)


def _source_ms(source: Any) -> int | None:
    found = source.get("ts_ms") if isinstance(source, dict) else None
    return found if isinstance(found, int) else None


def _counted(shape: Shape | str, found: Sequence[SampledValue | SampledRecord]) -> str:
    first = found[0].record if isinstance(found[0], SampledValue) else found[0]
    return f"{len(found)} x {shape} ({first.place})"


def _nothing(sample: TopicSample) -> FormatError:
    deleted = "only tombstones" if sample.records else "no records"
    return FormatError(
        "SAMPLE_EMPTY",
        f"topic {sample.topic} has {deleted}, and no registry has an Avro schema of it",
        hint="write a record first, or give the registry of its schemas: --registry URL",
    )


def _undecodable(
    sample: TopicSample,
    problem: str,
    found: Sequence[SampledValue | SampledRecord],
    schemas: Schemas | None,
) -> FormatError:
    kinds = Counter({problem: len(found)})
    if problem == _DOCUMENTS:
        hint = "let the connector's transform ExtractNewDocumentState make rows of them"
    elif schemas is None and "schema id" in problem:
        hint = "give the registry of the schemas: --registry URL"
    elif problem.endswith(_NO_FORMAT):
        hint = "have changes written as Avro with a registry, or as JSON without one"
    else:
        hint = "for texts or bytes of your own, declare one column and 'format' = 'raw'"
    return FormatError(
        "SAMPLE_UNREADABLE",
        f"topic {sample.topic}: {_counted(problem, found)} of {kinds.total()} such records cannot "
        "become columns",
        hint,
    )
