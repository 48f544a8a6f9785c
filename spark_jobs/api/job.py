"""Jobs in Python: built from SQL statements and changelogs, then started in a Spark session."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from pyspark.sql import SparkSession

from spark_jobs.api.changelog import Changelog, TemporalTableFunction
from spark_jobs.api.running import RunningJob, start_job
from spark_jobs.api.script import Script
from spark_jobs.api.session import check_session, master_of
from spark_jobs.api.text import quoted, string_text
from spark_jobs.plan.planner import plan
from spark_jobs.plan.text.explain import explain_job
from spark_jobs.settings import Overrides, job_settings, read_environment, read_sql


class Job:
    """The tables, settings and INSERTs of a job file; `text` gives the file.

    Whatever is added is bound and planned at once, so that SqlErrors come from the line of Python
    that is wrong; the job is then unchanged. References such as `${env:...}` and `${file:...}` in
    option values are kept as they are.
    """

    def __init__(self, name: str | None = None) -> None:
        """An empty job; `name` sets 'pipeline.name', which also names its folders."""
        self._script = Script()
        self._stem = "job"
        if name is not None:
            self.set("pipeline.name", name)

    @classmethod
    def from_sql(cls, path_or_text: str | Path) -> "Job":
        """A job from a file or from SQL text; a single line that ends in .sql is a file name.

        Raises:
            ConfigError: the file cannot be read.
            SqlErrors: all problems of the text. A text without INSERT is accepted.
        """
        job = cls()
        text = str(path_or_text)
        if isinstance(path_or_text, Path) or ("\n" not in text and text.endswith(".sql")):
            job._stem = Path(path_or_text).stem
            job._script = Script(read_sql(Path(path_or_text)), text)
        else:
            job._script = Script(text)
        return job

    @property
    def text(self) -> str:
        """The job as a file that `rejoin run`, `explain` and `check` take."""
        return self._script.text

    def sql(self, statements: str) -> None:
        """Add statements: CREATE TABLE, CREATE VIEW, SET, INSERT INTO."""
        self._script.add(statements)

    def set(self, key: str, value: str) -> None:
        """Add SET 'key' = 'value'; the SQL reference lists the settings."""
        self._script.add(f"SET {string_text(key)} = {string_text(value)}")

    def create_table(self, name: str, columns: str, options: Mapping[str, str]) -> Changelog:
        """Add CREATE TABLE `name` (`columns`) WITH (`options`)."""
        given = ",\n".join(f"  {string_text(k)} = {string_text(v)}" for k, v in options.items())
        self._script.add(f"CREATE TABLE {quoted(name)} (\n  {columns}\n) WITH (\n{given}\n)")
        return self.table(name)

    def create_view(self, name: str, changelog: Changelog) -> Changelog:
        """Add CREATE VIEW: names a query, for example as the right side of a temporal join."""
        self._script.add(f"CREATE VIEW {quoted(name)} AS\n{changelog.sql}")
        return self.table(name)

    def table(self, name: str) -> Changelog:
        """The rows of a table or view."""
        return Changelog.of_table(self._script, name)

    def register_function(
        self, name: str, function: TemporalTableFunction
    ) -> TemporalTableFunction:
        """Name a temporal table function, so that SQL text in `join_lateral` can call it."""
        function.declare(name)
        return TemporalTableFunction(
            function.script, function.table, function.time_attribute, function.primary_key, name
        )

    def create_function(self, name: str, function: Callable[..., Any]) -> None:
        """Add CREATE FUNCTION for a function of a module, so that SQL can call it by this name.

        Its type hints, or `rejoin.udf(result_type=...)`, say what it takes and gives.
        """
        target = string_text(f"{function.__module__}.{function.__qualname__}")
        self._script.add(f"CREATE FUNCTION {quoted(name)} AS {target} LANGUAGE PYTHON")

    def explain(self) -> str:
        """What `rejoin explain` prints: logical, optimised and physical plan, state, warnings.

        Raises:
            SqlErrors: the job has no INSERT.
        """
        job = self._script.job()
        return explain_job(job, plan(job))

    def start(
        self,
        spark: SparkSession,
        *,
        checkpoint: str | None = None,
        status_dir: Path | None = None,
        sidecar: bool = False,
        epoch_written: Sequence[str] = (),
        progress: TextIO | None = None,
    ) -> RunningJob:
        """Start the INSERTs in an existing session, whose settings are not changed.

        The arguments are the options of `rejoin run`; progress lines go to `progress`, if given.
        Returns when topics and rights have been checked and the checkpoints are open.

        Raises:
            ConfigError: the session lacks settings or jars that `rejoin.session_conf()` has, or a
                job runs in it already.
            RejoinError: any error with which `rejoin run` would end before its first epoch.
        """
        job = self._script.job()
        check_session(spark)
        overrides = Overrides(
            checkpoint, status_dir, None, sidecar, epoch_written, master_of(spark)
        )
        settings = job_settings(job.settings, self._stem, overrides, read_environment())
        return start_job(spark, job, self.text, settings, progress)
