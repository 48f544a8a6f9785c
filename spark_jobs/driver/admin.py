"""Admin commands that the sidecar leaves in the status folder, and what the driver does."""

from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from spark_jobs.commands import answer, take
from spark_jobs.driver.replays import Replays
from spark_jobs.driver.state_lookups import StateLookups

End = Literal["stop", "drain"]


def carry_out(
    spark: SparkSession, folder: Path, replays: Replays, lookups: StateLookups
) -> End | None:
    """Carry out the waiting commands; returns how the job has to end, if one of them ends it."""
    end: End | None = None
    replays.poll()
    lookups.poll()
    for command in take(folder):
        match command.verb:
            case "stop" | "drain" as verb:
                end = verb
                answer(folder, command, _ENDING[verb])
            case "log-level" if command.level is not None:
                spark.sparkContext.setLogLevel(command.level)
                answer(folder, command, f"the driver's log level is {command.level}")
            case "log-level":
                answer(folder, command, "nothing changed: the command has no level")
            case "dlq-replay":
                replays.begin(command)
            case "state-get":
                lookups.begin(command)
    return end


_ENDING: dict[End, str] = {
    "stop": "the running epoch is aborted",
    "drain": "the job stops after the running epoch",
}
