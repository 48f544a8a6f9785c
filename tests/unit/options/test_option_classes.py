"""The fields of the options classes: their types say what the tables of options say."""

from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from spark_jobs.options.connectors import KafkaOptions, table_options
from spark_jobs.options.declared import table_of
from spark_jobs.options.formats import FORMATS, AvroRegistryOptions
from spark_jobs.options.settings import DeclaredSettings, declared_settings


def _fields(kind: type) -> Iterator[tuple[Field[Any], Any]]:
    types = get_type_hints(kind)
    for each in fields(kind):
        if is_dataclass(types[each.name]):
            yield from _fields(types[each.name])
        elif "option" in each.metadata:
            yield each, types[each.name]


CLASSES = (KafkaOptions, DeclaredSettings, *dict.fromkeys(k.kind for k in FORMATS.values()))


@pytest.mark.parametrize("kind", CLASSES)
def test_types_of_fields_are_those_of_their_options(kind: type) -> None:
    options = table_of(kind)
    for each, type_ in _fields(kind):
        option = options[each.metadata["name"]]
        parts = get_args(type_) if get_origin(type_) is not Literal else (type_,)
        assert (option.default is None) == (NoneType in parts or type_ == tuple[str, ...]), each
        if option.default is not None:
            assert option.accepts(option.default), each
        literals = [p for p in (type_, *parts) if get_origin(p) is Literal]
        if literals:
            assert " | ".join(get_args(literals[0])) == option.expected


def test_settings_are_read_once() -> None:
    found = declared_settings({"table.exec.state.ttl": "2 h", "rejoin.multi-join": "FALSE"})
    assert (found.state_ttl_ms, found.multi_join, found.late_topic) == (7_200_000, False, None)
    assert found.restarts.fixed_delay_ms == 1_000
    assert list(found.given) == ["table.exec.state.ttl", "rejoin.multi-join"]


def test_the_kernel_reads_the_texts_of_a_format_with_its_defaults() -> None:
    found = table_options(
        {
            "connector": "upsert-kafka",
            "key.format": "json",
            "key.json.fail-on-missing-field": "TRUE",
            "value.format": "avro-confluent",
            "value.avro-confluent.url": "http://r",
            "rejoin.schema-id": "confluent-headers",
            "rejoin.registry.timeout": "2 s",
        }
    )
    assert found.key_format is not None
    assert found.key_format.texts["fail-on-missing-field"] == "TRUE"
    assert found.key_format.texts["timestamp-format.standard"] == "SQL"
    assert found.value_format is not None
    assert found.value_format.texts == {
        "url": "http://r",
        "auto-register-schemas": "true",
        "rejoin.schema-id": "confluent-headers",
        "rejoin.registry.timeout-ms": "2000",
    }
    options = found.value_format.options
    assert isinstance(options, AvroRegistryOptions)
    assert options.schema_ids == "confluent-headers"
    assert (options.registry.url, options.registry.timeout_ms) == ("http://r", 2000)
