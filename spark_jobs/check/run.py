"""The command `rejoin check`: one thing after the other, none of which writes or moves anything."""

from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Message

from spark_jobs.check.checkpoint import check_checkpoint
from spark_jobs.check.finding import Finding, Report, reporting
from spark_jobs.check.sample import check_samples
from spark_jobs.check.topics import check_sink, check_source
from spark_jobs.main import sinks_of
from spark_jobs.operators.launch import is_bounded, present
from spark_jobs.operators.running import scans
from spark_jobs.plan.physical import KafkaScan, KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.settings import Overrides, job_settings, read_environment, read_sql
from spark_jobs.sql.binder import bind


def check_job(sql_file: Path, checkpoint: str | None, offline: bool, report: Report) -> int:
    """The exit code: of the worst finding. Raises RejoinError for a file that cannot be planned."""
    worst = 0

    def tell(finding: Finding) -> None:
        nonlocal worst
        worst = max(worst, finding.exit_code)
        report(finding)

    job = bind(read_sql(sql_file), str(sql_file))
    sinks = sinks_of(plan(job))
    settings = job_settings(
        job.settings, sql_file.stem, Overrides(checkpoint=checkpoint), read_environment()
    )
    for name, sink in sinks.items():
        with reporting(tell, f"query {name}"):
            ends = "ends by itself" if is_bounded(sink) else "runs until it is stopped"
            tell(Finding("ok", f"query {name}", f"planned; {ends}"))
    if checkpoint is not None or Path(settings.checkpoint).is_dir():
        with reporting(tell, f"checkpoint {settings.checkpoint}"):
            queries = {name: present(sink, settings) for name, sink in sinks.items()}
            for finding in check_checkpoint(settings.checkpoint, queries):
                tell(finding)
    if not offline:
        _connect(sinks, tell)
    return worst


def _connect(sinks: Mapping[str, KafkaSink], tell: Report) -> None:
    samples: dict[str, tuple[KafkaScan, list[Message]]] = {}
    read = {scan.node.table: scan.node for sink in sinks.values() for scan in scans(sink)}
    for table, scan in read.items():
        with reporting(tell, f"table {table}"):
            findings, newest = check_source(scan)
            samples[table] = (scan, newest)
            for finding in findings:
                tell(finding)
    for sink in sinks.values():
        with reporting(tell, f"sink {sink.table}"):
            for finding in check_sink(sink):
                tell(finding)
    if any(newest for _, newest in samples.values()):
        for finding in check_samples(samples):
            tell(finding)
