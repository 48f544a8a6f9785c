"""Whether a query's changes may go into its sink."""

from collections.abc import Iterator

from spark_jobs.errors import PositionedError
from spark_jobs.options.settings import DeclaredSettings
from spark_jobs.plan.check.problems import why_updating, wrong
from spark_jobs.plan.facts.changelog import INSERT, sink_mode
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.keys import by_processing_time, is_unique, key_order
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.logical import Join, Logical, Scan, Sink, inputs_of


def sink_refusals(sink: Sink, settings: DeclaredSettings) -> Iterator[PositionedError]:
    """What the sink's table cannot take."""
    table = sink.table
    mode = sink_mode(table)
    if sink.on_conflict is not None and mode != "upsert":
        yield wrong(
            "ON_CONFLICT_SINK",
            f"ON CONFLICT says what becomes of rows with one primary key, but {table.name}"
            f" ({table.connector}) is written in {mode} mode",
            sink.position,
            "write to an upsert-kafka table with a PRIMARY KEY, or leave out ON CONFLICT",
        )
    elif sink.on_conflict in ("nothing", "error"):
        yield from _no_watermark(sink)
    if facts(sink).kinds == INSERT:
        return
    if mode == "append":
        value_format = table.value_format
        name = value_format.name if value_format else "?"
        yield wrong(
            "UPDATES_INTO_APPEND_SINK",
            f"table {table.name} ({table.connector}, {name}) takes insertions only, but the query"
            f" updates its rows: {why_updating(sink.input)}",
            sink.position,
            "write to an upsert-kafka table with a PRIMARY KEY, or to a kafka table with format"
            " debezium-json, debezium-avro-confluent, changelog-json, canal-json or maxwell-json",
        )
    if mode == "upsert" and not is_unique(facts(sink).unique_keys, sink_key(sink)):
        yield from _other_key(sink, settings)


def _no_watermark(sink: Sink) -> Iterator[PositionedError]:
    """ON CONFLICT compares rows of one key once the watermark has passed: each input needs one."""
    missing = sorted({t.name for t in _timeless(sink.input)})
    if missing:
        strategy = (sink.on_conflict or "").upper()
        have = "has" if len(missing) == 1 else "have"
        yield wrong(
            "ON_CONFLICT_NO_WATERMARK",
            f"ON CONFLICT DO {strategy} waits for the watermark, but {' and '.join(missing)}"
            f" {have} none",
            sink.position,
            "declare WATERMARK FOR a column there, or write ON CONFLICT DO DEDUPLICATE",
        )


def _timeless(node: Logical) -> Iterator[Table]:
    """Tables that hold the query's watermark back for ever: unbounded ones without their own."""
    match node:
        case Scan(table=table):
            if table.watermark is None and table.options.kafka.bounded.mode == "unbounded":
                yield table
        case Join() if is_versioned(node) and by_processing_time(node):
            yield from _timeless(node.left)
        case _:
            for input_ in inputs_of(node):
                yield from _timeless(input_)


def sink_key(sink: Sink) -> frozenset[int]:
    """The positions of the sink's primary key among its columns."""
    names = [c.name for c in sink.table.columns if c.writable]
    return frozenset(names.index(n) for n in sink.table.primary_key if n in names)


def _other_key(sink: Sink, settings: DeclaredSettings) -> Iterator[PositionedError]:
    """Rows of one sink key may come from several rows of the query: a materialiser keeps them."""
    if sink.on_conflict is None and settings.requires_on_conflict:
        yield wrong(
            "UPSERT_KEY",
            f"{_difference(sink)}, and 'table.exec.sink.require-on-conflict' is set",
            sink.position,
            "say what becomes of such rows: INSERT INTO ... SELECT ... ON CONFLICT DO DEDUPLICATE"
            " (the newest shows), DO NOTHING (the first stays) or DO ERROR",
        )
    if settings.upsert_materialize == "none":
        yield wrong(
            "UPSERT_KEY",
            f"{_difference(sink)}, and 'table.exec.sink.upsert-materialize' is none",
            sink.position,
            "leave that setting out, " + _way_out(sink),
        )


def _difference(sink: Sink) -> str:
    keys = _names(sink)
    return (
        f"the primary key ({', '.join(sink.table.primary_key)}) of {sink.table.name} does not"
        " determine the rows of the query: "
        + (f"unique is {' or '.join(keys[:3])}" if keys else "the query has no unique key")
    )


def _way_out(sink: Sink) -> str:
    keys = _names(sink)
    if keys:
        return f"or declare PRIMARY KEY {keys[0]} NOT ENFORCED in {sink.table.name}"
    return "or select the primary keys of the joined tables"


def _names(sink: Sink) -> list[str]:
    names = [c.name for c in sink.table.columns if c.writable]
    found = sorted(facts(sink).unique_keys, key=key_order)
    return ["(" + ", ".join(names[i] for i in sorted(k)) + ")" for k in found]
