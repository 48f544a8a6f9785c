"""A job file, from its text to a running job: bind, settings, plan, run."""

from pathlib import Path

from spark_jobs.driver.console import Console
from spark_jobs.driver.queries import plan_job
from spark_jobs.driver.run import run
from spark_jobs.settings import Overrides, job_settings, read_environment, read_sql
from spark_jobs.sql.bind.binder import bind


def run_job(sql_file: Path, overrides: Overrides, console: Console) -> None:
    """Run a job file until its inputs end or a signal stops it; raises the error that ended it."""
    text = read_sql(sql_file)
    job = bind(text, str(sql_file))
    settings = job_settings(job.settings, sql_file.stem, overrides, read_environment())
    run(plan_job(job, text, settings), console)
