"""A job in Python: statements of SQL, changelogs that become statements, and its start."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from pyspark.sql import SparkSession

from spark_jobs.api.changelog import Changelog, TemporalTableFunction
from spark_jobs.api.running import RunningJob, start_job
from spark_jobs.api.script import Script
from spark_jobs.api.text import quoted, string_text
from spark_jobs.plan.planner import plan
from spark_jobs.plan.text.explain import explain_job
from spark_jobs.settings import Overrides, job_settings, read_environment, read_sql


class Job:
    """Tables, settings and INSERTs: what a job file holds, and the same text as one.

    Whatever is added is bound and planned at once, so that SqlErrors come at the line of Python
    that is wrong; the job is then as it was before. Option values keep their `${env:...}` and
    `${file:...}`.
    """

    def __init__(self, name: str | None = None) -> None:
        """An empty job; `name` sets 'pipeline.name', after which its folders are called."""
        self._script = Script()
        self._stem = "job"
        if name is not None:
            self.set("pipeline.name", name)

    @classmethod
    def from_sql(cls, path_or_text: str | Path) -> "Job":
        """The job of a file or of a text; one line that ends in .sql is a file's name.

        Raises:
            ConfigError: the file cannot be read.
            SqlErrors: all problems of the text. That it inserts nothing yet is none.
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
        """SET 'key' = 'value'; docs/options.md lists the settings."""
        self._script.add(f"SET {string_text(key)} = {string_text(value)}")

    def create_table(self, name: str, columns: str, options: Mapping[str, str]) -> Changelog:
        """CREATE TABLE: `columns` is what stands in its parentheses, `options` in those of WITH."""
        given = ",\n".join(f"  {string_text(k)} = {string_text(v)}" for k, v in options.items())
        self._script.add(f"CREATE TABLE {quoted(name)} (\n  {columns}\n) WITH (\n{given}\n)")
        return self.table(name)

    def create_view(self, name: str, changelog: Changelog) -> Changelog:
        """CREATE VIEW: a query under a name, as the right side of a temporal join needs one."""
        self._script.add(f"CREATE VIEW {quoted(name)} AS\n{changelog.sql}")
        return self.table(name)

    def table(self, name: str) -> Changelog:
        """The rows of a table or view."""
        return Changelog.of_table(self._script, name)

    def register_function(
        self, name: str, function: TemporalTableFunction
    ) -> TemporalTableFunction:
        """Give a temporal table function the name by which `join_lateral` texts call it."""
        function.declare(name)
        return TemporalTableFunction(
            function.script, function.table, function.time_attribute, function.primary_key, name
        )

    def explain(self) -> str:
        """What `rejoin explain` prints: logical, optimised and physical plan, state, warnings.

        Raises:
            SqlErrors: nothing is inserted.
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
        """Start the INSERTs in an existing session, whose settings stay as they are.

        The arguments are the options of `rejoin run`; `progress` is where its lines go (nowhere).
        It returns when the checkpoints are open and topics and rights are known to be there.

        Raises:
            ConfigError: the session lacks something (`rejoin.session_conf()` has it), or a job
                runs in it already.
            RejoinError: what `rejoin run` would have ended with before its first epoch.
        """
        job = self._script.job()
        overrides = Overrides(checkpoint, status_dir, None, sidecar, epoch_written)
        settings = job_settings(job.settings, self._stem, overrides, read_environment())
        return start_job(spark, job, self.text, settings, progress)
