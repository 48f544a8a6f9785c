"""Project: the SELECT list of one input of a sink, encoded as records."""

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel, Message
from spark_jobs.operators.running import Running
from spark_jobs.plan.nodes.physical import KafkaScan, Project


def build_project(
    project: Project, rows: DataFrame, described: Message, number: int, running: Running
) -> DataFrame:
    """The records and dead-letter records of input `number` of the sink that is `described`."""
    changes = _changes(project, rows)
    return Kernel.of(running.spark).emit(changes, described, number)


def _changes(project: Project, rows: DataFrame) -> DataFrame:
    """Rows of a scan as changes; rows of an operator are changes already.

    Rows without a join key keep the order of their source partition.
    """
    if not isinstance(project.input, KafkaScan):
        return rows
    hashed = "`group`" if project.input.key else "source"
    return rows.where("kind < 16 OR kind = 32").selectExpr(
        "kind", f"{hashed} AS hash", "`row` AS `left`", "CAST(NULL AS BINARY) AS `right`"
    )
