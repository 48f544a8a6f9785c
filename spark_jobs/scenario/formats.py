"""Replaces formats with schema ids by plain JSON: a scenario tests SQL and needs no registry."""

from dataclasses import replace

from spark_jobs.options.connectors import REGISTRY_OPTIONS, table_options
from spark_jobs.sql.catalog import Table

_INSTEAD = {
    "json-registry": "json",
    "protobuf": "json",
    "proto-registry": "json",
    "avro": "json",
    "avro-confluent": "json",
    "debezium-avro-confluent": "debezium-json",
}
_FORMAT_OPTIONS = ("format", "key.format", "value.format")


def in_json(table: Table) -> Table:
    """The same table, columns and changelog mode in plain JSON."""
    given = table.options.given
    replaced = {name: given[name] for name in _FORMAT_OPTIONS if given.get(name) in _INSTEAD}
    below = tuple(f"{name.removesuffix('format')}{kind}." for name, kind in replaced.items())
    if not replaced:
        return table
    kept = {
        name: value
        for name, value in given.items()
        if not name.startswith(below) and name not in REGISTRY_OPTIONS
    }
    instead = {name: _INSTEAD[kind] for name, kind in replaced.items()}
    return replace(table, options=table_options({**kept, **instead}))
