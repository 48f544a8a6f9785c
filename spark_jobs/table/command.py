"""The command `rejoin table`: its options, its progress, and what it prints."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.errors import ConfigError
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.options.client_properties import client_properties
from spark_jobs.options.declared import read_options
from spark_jobs.options.formats import FORMATS, RegistryOptions
from spark_jobs.settings import read_sql
from spark_jobs.table.ddl import render_table, table_name
from spark_jobs.table.draft import draft_table
from spark_jobs.table.join import JoinSide, joined, no_join, render_join, with_equal_times
from spark_jobs.table.registered import Schemas
from spark_jobs.table.sampling import Progress, sample_topic
from spark_jobs.terminal import AsJson, screen, write_json

AVRO = "avro-confluent"
_PATIENCE_S = 10.0
_REGISTRY_OPTION = (
    "Option of the registry, such as 'basic-auth.user-info=u:${env:PASSWORD}' or "
    "'ssl.truststore.location=/etc/ca.p12'; repeatable."
)
# options of a format that say who asks the registry, and over which connection
_ACCESS = [o for o in FORMATS[AVRO].options if o.startswith(("basic-auth", "bearer-auth", "ssl"))]


def table(
    topics: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC...", help="Topics; of two, a join is printed as well."),
    ],
    bootstrap_server: Annotated[
        str | None, typer.Option(help="Brokers, such as localhost:9092.")
    ] = None,
    properties: Annotated[
        Path | None,
        typer.Option(help="File of Java client properties, with brokers, TLS, SASL."),
    ] = None,
    registry: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Schema registry; needed where records have a schema id."),
    ] = None,
    registry_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help=_REGISTRY_OPTION),
    ] = None,
    records: Annotated[
        int, typer.Option(help="Records to read of each topic, about.", min=1)
    ] = 2000,
    quantile: Annotated[
        float,
        typer.Option(
            help="Share of the sampled records that must not be late for the watermark.",
            min=0.5,
            max=1.0,
        ),
    ] = 0.99,
    as_json: AsJson = False,
) -> None:
    """Print CREATE TABLE statements for topics, and a join to start from.

    For the first lines of a job file: redirect them into it. Columns come from the schema
    registry if it has the topic's schemas, else from records read at several offsets of each
    partition: JSON, with or without Kafka Connect's schema, or Avro. Change events of Debezium are
    recognised, and so are topics whose records replace the row of their key. The primary key is
    the record key's; the watermark is as late as the sampled records were out of order.

    Comments say what was assumed; read them. Give two topics, and a join of them follows with a
    table for its results. Writes nothing, and commits no offset.
    """
    client = _client_properties(bootstrap_server, properties)
    wanted = list(dict.fromkeys(topics))
    with _progress() as progress, _schemas(registry, registry_option or ()) as (schemas, options):
        drafts = [
            draft_table(sample_topic(topic, client, records, progress), schemas, options, quantile)
            for topic in wanted
        ]
    sides = [JoinSide(d, name) for d, name in zip(drafts, _names(wanted), strict=True)]
    sql = _sql(sides, client, quantile)
    if as_json:
        write_json({"sql": sql, "tables": [_json(side) for side in sides]})
    else:
        typer.echo(sql)


def _sql(sides: Sequence[JoinSide], client: Mapping[str, str], quantile: float) -> str:
    join = joined(sides[0], sides[1]) if len(sides) == 2 else None
    if join is not None:
        join = with_equal_times(join)
        sides = [join.left, join.right]
    statements = [render_table(side.draft, side.name, client) for side in sides]
    if join is not None:
        statements.append(render_join("\n".join(statements), join, client, quantile))
    elif len(sides) == 2:
        statements.append(no_join(sides[0], sides[1]))
    return "\n\n".join(statements)


def _client_properties(servers: str | None, file: Path | None) -> dict[str, str]:
    """Properties of the Kafka client, brokers first. Raises ConfigError if no brokers are named."""
    given = {} if file is None else client_properties(read_sql(file))
    named = servers or given.pop("bootstrap.servers", None)
    if named is None:
        raise ConfigError(
            "BOOTSTRAP_MISSING",
            "no brokers are named",
            hint="give --bootstrap-server HOST:PORT, or 'bootstrap.servers' in --properties FILE",
        )
    return {**given, "bootstrap.servers": named}


@contextmanager
def _progress() -> Iterator[Progress]:
    """A line on the terminal that says what is read; nothing in a pipe."""
    with screen(sys.stderr).status("connecting") as status:
        yield status.update


@contextmanager
def _schemas(
    url: str | None, settings: Sequence[str]
) -> Iterator[tuple[Schemas | None, dict[str, str]]]:
    """The registry, and the options of a format that reads from it."""
    given: dict[str, str] = {} if url is None else {"url": url}
    for setting in settings:
        name, separator, value = setting.partition("=")
        if not separator or name not in _ACCESS:
            raise ConfigError(
                "COMMAND_LINE",
                f"'{setting}' is no option of a registry",
                hint=f"NAME=VALUE with one of {', '.join(_ACCESS)}",
            )
        given[name] = value
    if url is None:
        if given:
            hint = "give the address of the registry: --registry URL"
            raise ConfigError("COMMAND_LINE", "registry options without a registry", hint)
        yield None, {}
        return
    client = RegistryClient(read_options(RegistryOptions, given), _PATIENCE_S)
    try:
        yield Schemas(client), given
    finally:
        client.close()


def _names(topics: Sequence[str]) -> list[str]:
    """A name for each table; topics that end alike get their whole names."""
    short = [table_name(topic) for topic in topics]
    return [
        name if short.count(name) == 1 else table_name(topic.replace(".", "_"))
        for name, topic in zip(short, topics, strict=True)
    ]


def _json(side: JoinSide) -> dict[str, object]:
    draft = side.draft
    return {
        "name": side.name,
        "topic": draft.topic,
        "columns": [{"name": c.name, "type": c.type.sql(), "note": c.note} for c in draft.columns],
        "key": list(draft.key),
        "changes": draft.changes,
        "records": len(draft.sample.records),
        "notes": list(draft.notes),
    }
