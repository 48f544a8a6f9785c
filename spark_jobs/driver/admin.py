"""What the sidecar's admin verbs make the driver do."""

from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from spark_jobs.commands import Command, answer, take
from spark_jobs.driver.replays import Replays

End = Literal["stop", "drain"]


def obey(spark: SparkSession, folder: Path, replays: Replays) -> End | None:
    """Carry out what waits in the status folder; how the job is to end, if it is."""
    end: End | None = None
    replays.poll()
    for command in take(folder):
        match command.verb:
            case "stop" | "drain" as verb:
                end = verb
                answer(folder, command, _ENDING[verb])
            case "log-level":
                answer(folder, command, _set_level(spark, command))
            case "dlq-replay":
                replays.begin(command)
    return end


_ENDING: dict[End, str] = {
    "stop": "the running epoch is cut off",
    "drain": "the job stops after the running epoch",
}


def _set_level(spark: SparkSession, command: Command) -> str:
    if command.level is None:
        return "no level was given: nothing changed"
    spark.sparkContext.setLogLevel(command.level)
    return f"the driver logs {command.level} and above"
