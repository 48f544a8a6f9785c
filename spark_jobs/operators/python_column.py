"""Columns that Python computes, between an operator and the sink's encoder."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import udf
from pyspark.sql.types import StructType

from spark_jobs.functions import computing
from spark_jobs.functions.computing import Computed
from spark_jobs.functions.loading import load
from spark_jobs.kernel.calls import Kernel, Message
from spark_jobs.plan.nodes.parts import PythonColumn
from spark_jobs.sql.types.data_types import DataType


def add_column(
    column: PythonColumn, place: int, rows: DataFrame, described: Message, number: int
) -> DataFrame:
    """The changes with one more column, the `place`th that Python computes for this input.

    The function goes to the workers by value, with its module: nothing has to be installed there
    but what the module itself imports.
    """
    prepared = Kernel.of(rows.sparkSession).arguments(rows, described, number, place)
    pickle: Any = import_module("pyspark.cloudpickle")  # has no types
    for module in (computing.__name__, column.target.rpartition(".")[0]):
        if module != "__main__":
            pickle.register_pickle_by_value(sys.modules[module])
    schema: Any = column.schema.spark_json()
    # pickled, whether or not PyArrow is installed: docs/decisions/0011 says why
    type_ = StructType.fromJson(schema)[0].dataType
    function: Any = udf(callable_of(column), type_, useArrow=False)
    # Spark would copy a deterministic call into every expression that reads its column
    called = function.asNondeterministic()
    arguments = [prepared[f"argument{i}"] for i in range(len(column.arguments) + 1)]
    kept = [prepared[f"`{name}`"] for name in rows.columns]
    return prepared.select(*kept, called(*arguments).alias(column.name))


def callable_of(column: PythonColumn) -> Computed:
    """The function as it is called for each row; it was loaded when the job was bound."""
    return Computed(column.target, load(column.target), type_parts(column.type))


def type_parts(type_: DataType) -> Sequence[Any]:
    """The type as `Computed` takes it.

    >>> type_parts(DataType("DECIMAL", precision=10, scale=2))
    ('DECIMAL', 10, 2)
    """
    if type_.name == "ARRAY" and type_.element is not None:
        return ("ARRAY", tuple(type_parts(type_.element)))
    if type_.name == "DECIMAL":
        return (type_.name, type_.precision, type_.scale)
    return (type_.name,)
