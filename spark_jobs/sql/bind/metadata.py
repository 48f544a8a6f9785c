"""What METADATA columns may read, and the types they may have."""

from dataclasses import dataclass

from spark_jobs.sql.types.data_types import BIGINT, BYTES, INT, STRING, DataType, with_nullable

_TIMES = (DataType("TIMESTAMP"), DataType("TIMESTAMP_LTZ"), BIGINT)
_STRINGS = DataType("ARRAY", element=STRING)


@dataclass(frozen=True, slots=True)
class MetadataKey:
    """The types that a column of this key may have, in any precision; `refused` says what to do."""

    types: tuple[DataType, ...]
    refused: str | None = None

    def takes(self, type_: DataType) -> bool:
        return any(_alike(t, type_) for t in self.types)


def _map(value: DataType) -> DataType:
    return DataType("MAP", key=STRING, element=value)


_KAFKA: dict[str, MetadataKey] = {
    "topic": MetadataKey((STRING,)),
    "partition": MetadataKey((INT,)),
    "offset": MetadataKey((BIGINT,)),
    "timestamp": MetadataKey(_TIMES),
    "timestamp-type": MetadataKey((STRING,)),
    "headers": MetadataKey((_map(BYTES),)),
    "leader-epoch": MetadataKey((INT,), "Spark's Kafka source does not give it"),
}
WRITABLE = ("timestamp", "headers")
"""Metadata that a sink's columns without VIRTUAL become, as in Flink."""
_DEBEZIUM: dict[str, MetadataKey] = {
    "value.ingestion-timestamp": MetadataKey(_TIMES),
    "value.source.timestamp": MetadataKey(_TIMES),
    "value.source.database": MetadataKey((STRING,)),
    "value.source.schema": MetadataKey((STRING,)),
    "value.source.table": MetadataKey((STRING,)),
    "value.source.properties": MetadataKey((_map(STRING),)),
    "value.schema": MetadataKey((STRING,), "leave it out"),
}
_BINLOG: dict[str, MetadataKey] = {
    "value.database": MetadataKey((STRING,)),
    "value.table": MetadataKey((STRING,)),
    "value.ingestion-timestamp": MetadataKey(_TIMES),
}
_CANAL = _BINLOG | {
    "value.event-timestamp": MetadataKey(_TIMES),
    "value.sql-type": MetadataKey((_map(INT),)),
    "value.pk-names": MetadataKey((_STRINGS,)),
}
_MAXWELL = _BINLOG | {"value.primary-key-columns": MetadataKey((_STRINGS,))}
_BY_FORMAT = {
    # Flink has the keys of Debezium for JSON only
    **dict.fromkeys(("debezium-json", "debezium-avro-confluent"), _DEBEZIUM),
    "canal-json": _CANAL,
    "maxwell-json": _MAXWELL,
}
# an unwrapped row has only the columns of `source` that it names
_WHOLE_EVENTS = ("value.source.properties", "value.schema")
_UNWRAPPED = {k: v for k, v in _DEBEZIUM.items() if k not in _WHOLE_EVENTS}


def keys_of(value_format: str | None, unwrapped: bool = False) -> dict[str, MetadataKey]:
    """All metadata keys of a Kafka table with this value format, or with unwrapped rows in it."""
    return _KAFKA | (_UNWRAPPED if unwrapped else _BY_FORMAT.get(value_format or "", {}))


def _alike(allowed: DataType, type_: DataType) -> bool:
    if allowed.name != type_.name:
        return False
    pairs = ((allowed.key, type_.key), (allowed.element, type_.element))
    return all(with_nullable(a, True) == with_nullable(b, True) for a, b in pairs if a and b)
