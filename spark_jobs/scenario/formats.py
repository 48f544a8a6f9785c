"""Replaces Avro by JSON, so that a scenario needs no schema registry: it tests SQL, not formats."""

from dataclasses import replace

from spark_jobs.options.connectors import REGISTRY_OPTIONS
from spark_jobs.sql.catalog import Table

_INSTEAD = {
    "avro": "json",
    "avro-confluent": "json",
    "debezium-avro-confluent": "debezium-json",
}
_FORMAT_OPTIONS = ("format", "key.format", "value.format")


def in_json(table: Table) -> Table:
    """The same table, columns and changelog mode with JSON in place of Avro."""
    given = table.options
    avro = {name: given[name] for name in _FORMAT_OPTIONS if given.get(name) in _INSTEAD}
    below = tuple(f"{name.removesuffix('format')}{kind}." for name, kind in avro.items())
    if not avro:
        return table
    kept = {
        name: value
        for name, value in given.items()
        if not name.startswith(below) and name not in REGISTRY_OPTIONS
    }
    return replace(table, options={**kept, **{name: _INSTEAD[kind] for name, kind in avro.items()}})
