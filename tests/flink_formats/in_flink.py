"""Reads and writes records with Flink's own formats; runs in Flink's environment (bench/flink).

A line of JSON in, a line of JSON out. Asked is a `format` with its `options` and `columns`, and
either `values`, records that are read, or `rows`, pairs of a kind and a row that are written. The
answer has for each value its changes, `[kind, row as JSON text]`, for each row the record; where
Flink fails, `{"error": Java's text}`. Bytes of records are the characters of a text.
"""

import json
import os
import sys
from importlib import import_module
from typing import Any


class Formats:
    """The formats as their factories make them for a table of Kafka."""

    def __init__(self) -> None:
        # imported dynamically, because linters check this file without Flink
        self._jvm = import_module("pyflink.java_gateway").get_gateway().jvm
        self._flink = self._jvm.org.apache.flink
        formats = self._flink.formats
        self._factories = {
            "csv": formats.csv.CsvFormatFactory,
            "canal-json": formats.json.canal.CanalJsonFormatFactory,
            "maxwell-json": formats.json.maxwell.MaxwellJsonFormatFactory,
        }

    def answer(self, asked: dict[str, Any]) -> list[Any]:
        options = self._flink.configuration.Configuration()
        for name, value in asked["options"].items():
            options.setString(name, value)
        factory = self._factories[asked["format"]]()
        fields = self._data_type(asked["columns"])
        if "rows" in asked:
            return self._written(factory.createEncodingFormat(None, options), fields, asked["rows"])
        decoding = factory.createDecodingFormat(None, options)
        return self._read(decoding, asked, fields)

    def _read(self, decoding: Any, asked: dict[str, Any], fields: Any) -> list[Any]:
        context = self._flink.table.runtime.connector.source.ScanRuntimeProviderContext.INSTANCE
        produced = fields
        metadata = asked.get("metadata", [])
        if metadata:
            decoding.applyReadableMetadata([key for key, _ in metadata])
            produced = self._data_type([*asked["columns"], *([k, t] for k, t in metadata)])
        if asked["format"] == "csv":
            paths = [[i] for i in range(len(asked["columns"]))]
            decoder = decoding.createRuntimeDecoder(context, fields, self._paths(paths))
        else:
            decoder = decoding.createRuntimeDecoder(context, fields)
        decoder.open(None)
        writer = self._json_writer(produced)
        return [self._changes(decoder, writer, value) for value in asked["values"]]

    def _changes(self, decoder: Any, writer: Any, value: str) -> Any:
        found = self._jvm.java.util.ArrayList()
        collector = self._flink.api.common.functions.util.ListCollector(found)
        try:
            decoder.deserialize(bytearray(value.encode("latin-1")), collector)
            return [
                [row.getRowKind().shortString(), bytes(writer.serialize(row)).decode()]
                for row in found
            ]
        except Exception as failure:  # whatever Flink raises is an answer
            return {"error": _text(failure)}

    def _written(self, encoding: Any, fields: Any, rows: list[Any]) -> list[Any]:
        context = self._flink.table.runtime.connector.sink.SinkRuntimeProviderContext(False)
        encoder = encoding.createRuntimeEncoder(context, fields)
        encoder.open(None)
        reader = self._json_reader(fields)
        return [self._record(encoder, reader, kind, row) for kind, row in rows]

    def _record(self, encoder: Any, reader: Any, kind: str, row: Any) -> Any:
        kinds = self._flink.types.RowKind
        by_text = {k.shortString(): k for k in kinds.values()}
        try:
            made = reader.deserialize(bytearray(json.dumps(row).encode()))
            made.setRowKind(by_text[kind])
            return bytes(encoder.serialize(made)).decode("latin-1")
        except Exception as failure:  # whatever Flink raises is an answer
            return {"error": _text(failure)}

    def _data_type(self, columns: list[list[str]]) -> Any:
        parser = self._flink.table.types.logical.utils.LogicalTypeParser
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        text = ", ".join(f"`{name}` {type_}" for name, type_ in columns)
        conversions = self._flink.table.types.utils.TypeConversions
        return conversions.fromLogicalToDataType(parser.parse(f"ROW<{text}>", loader))

    def _json_reader(self, fields: Any) -> Any:
        package = self._flink.formats
        type_ = fields.getLogicalType()
        info = self._flink.table.runtime.typeutils.InternalTypeInfo.of(type_)
        standard = package.common.TimestampFormat.SQL
        made = package.json.JsonRowDataDeserializationSchema(type_, info, False, False, standard)
        made.open(None)
        return made

    def _json_writer(self, fields: Any) -> Any:
        package = self._flink.formats
        fail = package.json.JsonFormatOptions.MapNullKeyMode.FAIL
        standard = package.common.TimestampFormat.SQL
        made = package.json.JsonRowDataSerializationSchema(
            fields.getLogicalType(), standard, fail, "null", False, False
        )
        made.open(None)
        return made

    def _paths(self, paths: list[list[int]]) -> Any:
        gateway = import_module("pyflink.java_gateway").get_gateway()
        made = gateway.new_array(self._jvm.int, len(paths), 1)
        for place, path in enumerate(paths):
            made[place][0] = path[0]
        return made


def _text(failure: Any) -> str:
    """The innermost cause that Java has for it."""
    cause = getattr(failure, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    return str(failure if cause is None else cause.toString()).splitlines()[0]


def main() -> None:
    # what Flink prints must not stand between the answers
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    formats = Formats()
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"answers": formats.answer(json.loads(line))}
        except Exception as failure:  # a format that Flink does not make
            answer = {"error": _text(failure)}
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()


if __name__ == "__main__":
    main()
