"""Answers queries in Flink until its input ends; runs in Flink's environment (bench/flink).

A line of JSON in, a line of JSON out: `request.py` says what is asked. The answer is `rows`, all
changes of the result, each with its kind in front, or `error`, Java's text. One mini cluster serves
all queries, because starting one takes longer than most of them.

Watermarks stay still until the inputs end, whatever the tables declare: rows of several inputs come
in no certain order, so a watermark that moves between them would decide by chance what is late.
"""

import json
import os
import sys
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any

_CLUSTER = {
    "rest.port": "0",
    "rest.bind-port": "0",
    "taskmanager.memory.managed.size": "16m",
    "taskmanager.memory.network.min": "64m",
    "taskmanager.memory.network.max": "64m",
}
_SETTINGS = {
    "parallelism.default": "1",
    "pipeline.auto-watermark-interval": "36500 d",
    "table.local-time-zone": "UTC",
}
_READ = {"DECIMAL": Decimal, "DATE": date.fromisoformat, "TIMESTAMP": datetime.fromisoformat}
_SLOTS = 4


class Server:
    """The cluster, and the table environment in which all queries run."""

    def __init__(self) -> None:
        # imported dynamically, because linters check this file without Flink
        self._common = import_module("pyflink.common")
        self._table = import_module("pyflink.table")
        self._java_class = import_module("py4j.java_gateway").get_java_class
        self._jvm = import_module("pyflink.java_gateway").get_gateway().jvm
        self._stream = self._environment(self._cluster())
        self._tables = self._table.StreamTableEnvironment.create(self._stream)
        kinds = self._common.RowKind
        self._kinds = {
            "+I": kinds.INSERT,
            "-U": kinds.UPDATE_BEFORE,
            "+U": kinds.UPDATE_AFTER,
            "-D": kinds.DELETE,
        }
        self._texts = {kind: text for text, kind in self._kinds.items()}

    def answer(self, asked: dict[str, Any]) -> list[list[Any]]:
        made: list[str] = []
        try:
            for table in asked["tables"]:
                self._tables.create_temporary_view(table["name"], self._changelog(table))
                made.append(table["name"])
            for name, text in asked["views"]:
                self._tables.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {text}")
                made.append(name)
            with self._tables.execute_sql(asked["query"]).collect() as found:
                return [[self._texts[row.get_row_kind()], *row] for row in found]
        finally:
            for name in reversed(made):
                self._tables.drop_temporary_view(name)

    def _cluster(self) -> Any:
        """The address of a new mini cluster in the JVM."""
        package = self._jvm.org.apache.flink.runtime.minicluster
        builder = package.MiniClusterConfiguration.Builder()
        builder = builder.setConfiguration(self._configuration(_CLUSTER))
        builder = builder.setNumTaskManagers(1).setNumSlotsPerTaskManager(_SLOTS)
        cluster = package.MiniCluster(builder.build())
        cluster.start()
        return cluster.getRestAddress().get()

    def _environment(self, address: Any) -> Any:
        datastream = import_module("pyflink.datastream")
        package = self._jvm.org.apache.flink.streaming.api.environment
        no_jars = import_module("pyflink.util.java_utils").to_jarray(self._jvm.String, [])
        remote = package.StreamExecutionEnvironment.createRemoteEnvironment(
            address.getHost(), address.getPort(), self._configuration(_SETTINGS), no_jars
        )
        return datastream.StreamExecutionEnvironment(remote)

    def _configuration(self, settings: dict[str, str]) -> Any:
        configuration = self._common.Configuration()
        for key, value in settings.items():
            configuration.set_string(key, value)
        return configuration._j_configuration

    def _changelog(self, table: dict[str, Any]) -> Any:
        columns = table["columns"]
        types = [self._type_info(kind) for _, kind in columns]
        info = self._common.Types.ROW_NAMED([name for name, _ in columns], types)
        rows = self._stream.from_collection(list(self._rows(table)), info)
        builder = self._table.Schema.new_builder()
        for name, kind in columns:
            # PyFlink has no name for the Java class of a column
            builder._j_builder.column(name, self._data_type(kind, name in table["key"]))
        for name, expression in table["computed"]:
            builder.column_by_expression(name, expression)
        for name, expression in table["watermarks"]:
            builder.watermark(name, expression)
        if table["key"]:
            builder.primary_key(*table["key"])
        mode = getattr(self._table.ChangelogMode, table["mode"])()
        return self._tables.from_changelog_stream(rows, builder.build(), mode)

    def _rows(self, table: dict[str, Any]) -> Iterator[Any]:
        reads = [_READ.get(kind.partition("(")[0]) for _, kind in table["columns"]]
        for kind, *values in table["rows"]:
            parts = zip(values, reads, strict=True)
            row = self._common.Row(
                *(v if v is None or read is None else read(v) for v, read in parts)
            )
            row.set_row_kind(self._kinds[kind])
            yield row

    def _type_info(self, kind: str) -> Any:
        types = self._common.Types
        by_name = {
            "INT": types.INT,
            "BIGINT": types.LONG,
            "STRING": types.STRING,
            "BOOLEAN": types.BOOLEAN,
            "DOUBLE": types.DOUBLE,
            "DECIMAL": types.BIG_DEC,
            "DATE": types.SQL_DATE,
            "TIMESTAMP": types.SQL_TIMESTAMP,
        }
        return by_name[kind.partition("(")[0]]()

    def _data_type(self, kind: str, is_key: bool) -> Any:
        """Java's data type, of the classes in which Python's dates and timestamps come."""
        types, sql = self._jvm.org.apache.flink.table.api.DataTypes, self._jvm.java.sql
        name, _, rest = kind.partition("(")
        sizes = [int(size) for size in rest.rstrip(")").split(",") if size]
        made = getattr(types, name)(*sizes)
        if name in ("DATE", "TIMESTAMP"):
            java = sql.Date if name == "DATE" else sql.Timestamp
            made = made.bridgedTo(self._java_class(java))
        return made.notNull() if is_key else made


def main() -> None:
    # what Flink prints must not stand between the answers
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    server = Server()
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"rows": server.answer(json.loads(line))}
        except Exception as error:  # whatever Flink raises is an answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(f"{json.dumps(answer, default=str)}\n")
        answers.flush()


if __name__ == "__main__":
    main()
