"""Project: the SELECT list of one input of a sink, encoded as records."""

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel, Message
from spark_jobs.operators.python_column import add_column
from spark_jobs.operators.running import Running
from spark_jobs.plan.nodes.physical import KafkaScan, Project


def build_project(
    project: Project, rows: DataFrame, described: Message, number: int, running: Running
) -> DataFrame:
    """The records and dead-letter records of input `number` of the sink that is `described`.

    Rows of an operator are changes already. Rows of a scan become changes here; without a join key
    they keep the order of their source partition.
    """
    if isinstance(project.input, KafkaScan):
        hashed = "`group`" if project.input.key else "source"
        rows = rows.where("kind < 16 OR kind = 32").selectExpr(
            "kind",
            f"{hashed} AS hash",
            "`row` AS `left`",
            "CAST(NULL AS BINARY) AS `right`",
            "recordMs",
        )
    for place, column in enumerate(project.computed):
        rows = add_column(column, place, rows, described, number)
    return Kernel.of(running.spark).emit(rows, described, number)
