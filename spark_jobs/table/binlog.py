"""What a table of Canal's or Maxwell's changes is made of: its records, columns and key."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from spark_jobs.errors import FormatError
from spark_jobs.table.columns import Column
from spark_jobs.table.json_columns import BY_VALUES, JsonColumns, json_columns
from spark_jobs.table.mysql_types import mysql_columns
from spark_jobs.table.texts import typed_rows
from spark_jobs.table.values import BinlogRecord, SampledValue, SampledValues


class OneTable(NamedTuple):
    """The records of one table, and the options that leave out those of others."""

    found: SampledValues
    options: dict[str, str]
    notes: tuple[str, ...]


def of_one_table(topic: str, found: SampledValues) -> OneTable:
    """The records of the most frequent table. Raises FormatError if others cannot be left out."""
    tables = Counter(_said(value).table for value in found.values)
    (name, _), *others = tables.most_common()
    if not others:
        return OneTable(found, {}, ())
    text = "; ".join(f"{count} x {table}" for table, count in tables.most_common())
    if found.shape.meaning == "maxwell":
        raise FormatError(
            "SAMPLE_MIXED",
            f"topic {topic} has changes of several tables: {text}",
            hint="maxwell-json reads one table: let Maxwell write a topic for each, by its "
            "'kafka_topic' = '%{database}.%{table}'",
        )
    database, _, table = name.partition(".")
    options = {"database.include": re.escape(database), "table.include": re.escape(table)}
    values = [value for value in found.values if _said(value).table == name]
    note = f"the topic has changes of several tables, this one reads {name}: {text}"
    return OneTable(replace(found, values=values), options, (note,))


def binlog_columns(found: SampledValues) -> tuple[JsonColumns, str]:
    """The columns, and where their types are from. Canal writes all values as texts."""
    types = next((t for v in reversed(found.values) if (t := _said(v).types)), None)
    if types is not None:
        return JsonColumns(mysql_columns(types), "SQL"), "types are MySQL's, from the newest record"
    rows: list[dict[str, Any]] = []
    for value in found.values:
        rows += [*(() if value.row is None else (value.row,)), *_said(value).more]
    read = typed_rows(rows) if found.shape.meaning == "canal" else rows
    return json_columns(read), BY_VALUES


def named_key(values: Sequence[SampledValue], columns: Sequence[Column]) -> tuple[str, ...]:
    """The primary key that the newest record names; nothing if a column of it is missing."""
    key = next((k for v in reversed(values) if (k := _said(v).key)), ())
    return key if {column.name for column in columns} >= set(key) else ()


def _said(value: SampledValue) -> BinlogRecord:
    if value.binlog is None:
        raise ValueError("a record of Canal or Maxwell says which table it is of")
    return value.binlog
