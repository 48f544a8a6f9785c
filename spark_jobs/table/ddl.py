"""CREATE TABLE statements as text, with what they assume as comments."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from spark_jobs.api.text import interval_text, quoted, string_text
from spark_jobs.options.secrets import literal_secret
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.table.draft import TableDraft

_WIDTH = 100


def table_name(topic: str) -> str:
    """A name for the table of a topic: its last part, in characters that need no quotes.

    >>> table_name("shop.public.orders"), table_name("2024-orders")
    ('orders', 't_2024_orders')
    """
    name = re.sub(r"\W", "_", topic.rpartition(".")[2] or topic, flags=re.ASCII)
    return name if name[:1].isalpha() or name[:1] == "_" else f"t_{name}"


def render_table(draft: TableDraft, name: str, properties: Mapping[str, str]) -> str:
    """The statement, after its comments. `properties`: those of the Kafka client."""
    lines = [*_comments(draft), f"CREATE TABLE {quoted(name)} (", *_body(draft), ") WITH ("]
    return "\n".join([*lines, *options_text(_options(draft, properties)), ");"])


def options_text(options: Mapping[str, str]) -> list[str]:
    """The lines of a WITH clause."""
    shown = [f"  {string_text(name)} = {string_text(value)}" for name, value in options.items()]
    return [*(f"{line}," for line in shown[:-1]), shown[-1]]


def connection(topic: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Topic and client properties as WITH options; a secret becomes a reference to one."""
    given = {f"properties.{name}": value for name, value in properties.items()}
    return {"topic": topic} | {k: without_secret(k, v) for k, v in given.items()}


def without_secret(name: str, value: str) -> str:
    """The value, or a reference to be filled in where it is a secret.

    >>> without_secret("properties.ssl.key.password", "hush")
    '${env:SSL_KEY_PASSWORD}'
    """
    if literal_secret(name, value) is None:
        return value
    variable = re.sub(r"\W", "_", name.removeprefix("properties.")).upper()
    return f"${{env:{variable}}}"


def type_sql(type_: DataType) -> str:
    """The type with quoted field names where they need it."""
    match type_:
        case DataType(name="ROW", fields=fields):
            return f"ROW<{', '.join(f'{quoted(f.name)} {type_sql(f.type)}' for f in fields)}>"
        case DataType(name="ARRAY", element=DataType() as element):
            return f"ARRAY<{type_sql(element)}>"
        case DataType(name="MAP", key=DataType() as key, element=DataType() as element):
            return f"MAP<{type_sql(key)}, {type_sql(element)}>"
    return type_.sql()


def wrapped(text: str) -> Iterator[str]:
    """Comment lines; nothing in the text ends a comment early."""
    plain = " ".join(text.split())
    return (
        f"{'-- ' if i == 0 else '--   '}{line}"
        for i, line in enumerate(textwrap.wrap(plain, _WIDTH - 5))
    )


def _comments(draft: TableDraft) -> Iterator[str]:
    sample = draft.sample
    read = len(sample.records)
    places = len({record.run for record in sample.records})
    yield from wrapped(
        f"Topic {draft.topic}: {_counted(sample.partitions, 'partition')}, "
        f"{_counted(sample.offsets, 'offset')} in use; {_counted(read, 'record')} read at "
        f"{_counted(places, 'place')}. {draft.shape}."
    )
    notes = [*draft.notes, *(draft.time.notes if draft.time else ())]
    for note in notes:
        yield from wrapped(f"{note[0].upper()}{note[1:]}.")


def _body(draft: TableDraft) -> list[str]:
    entries = [(f"{quoted(c.name)} {type_sql(c.type)}", c.note) for c in draft.columns]
    if draft.time is not None and draft.time.declaration is not None:
        entries.append((f"{quoted(draft.time.name)} {draft.time.declaration}", None))
    if draft.key:
        entries.append((f"PRIMARY KEY ({_listed(draft.key)}) NOT ENFORCED", None))
    if draft.time is not None:
        name, delay = quoted(draft.time.name), interval_text(draft.time.delay_ms * 1_000)
        entries.append((f"WATERMARK FOR {name} AS {name} - {delay}", None))
    last = len(entries) - 1
    return [
        f"  {text}{'' if i == last else ','}{_noted(note)}"
        for i, (text, note) in enumerate(entries)
    ]


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _noted(note: str | None) -> str:
    return "" if note is None else f"  -- {' '.join(note.split())}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


def _options(draft: TableDraft, properties: Mapping[str, str]) -> dict[str, str]:
    options = {"connector": draft.connector, **connection(draft.topic, properties)}
    if draft.connector == "kafka":
        options["scan.startup.mode"] = "earliest-offset"
    return options | {k: without_secret(k, v) for k, v in draft.options.items()}
