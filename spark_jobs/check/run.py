"""The command `rejoin check`: one thing after the other, none of which writes or moves anything."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_jobs.check.checkpoint import check_checkpoint, sink_partitions
from spark_jobs.check.clock import (
    check_broker_clock,
    check_record_clocks,
    check_registry_clock,
)
from spark_jobs.check.finding import Finding, Report, reporting
from spark_jobs.check.growth import check_growth
from spark_jobs.check.registry import (
    check_reader,
    check_registry,
    check_writer_schema,
    registry_formats,
)
from spark_jobs.check.rights import check_rights
from spark_jobs.check.sample import Decoded, check_sample
from spark_jobs.check.topics import Source, check_letters, check_sink, check_source, check_widths
from spark_jobs.driver.queries import is_bounded, present, sinks_of
from spark_jobs.kernel.local_jvm import local_kernel
from spark_jobs.operators.running import scans
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.settings import JobSettings, Overrides, job_settings, read_environment, read_sql
from spark_jobs.sql.bind.binder import bind

_NO_ANSWER = ("KAFKA_UNREACHABLE", "KAFKA_LOGIN_FAILED", "TOPIC_MISSING")


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
            tell(Finding("ok", "QUERY_PLANNED", f"query {name}", f"planned; {ends}"))
    if checkpoint is not None or Path(settings.checkpoint).is_dir():
        with reporting(tell, f"checkpoint {settings.checkpoint}"):
            queries = {name: present(sink, settings) for name, sink in sinks.items()}
            for finding in check_checkpoint(settings.checkpoint, queries):
                tell(finding)
    if not offline:
        Surroundings(sinks, settings, tell).look()
    return worst


@dataclass
class Surroundings:
    """Brokers and registries of one job, looked at one by one."""

    sinks: Mapping[str, KafkaSink]
    settings: JobSettings
    report: Report
    sources: dict[str, Source] = field(default_factory=dict)
    unknown: str = ""  # the code because of which nothing can be known of rights

    def tell(self, finding: Finding) -> None:
        self.unknown = finding.code if finding.code in _NO_ANSWER else self.unknown
        self.report(finding)

    def look(self) -> None:
        read = {s.node.table: s.node for sink in self.sinks.values() for s in scans(sink)}
        for table, scan in read.items():
            with reporting(self.tell, f"table {table}"):
                findings, self.sources[table] = check_source(scan, self.settings.cores())
                for finding in findings:
                    self.tell(finding)
        for name, sink in self.sinks.items():
            self._sink(name, sink)
        if self.unknown:
            text = f"not known while a check above ends in {self.unknown}"
            self.tell(Finding("warning", "RIGHTS_UNKNOWN", "rights", text))
        else:
            with reporting(self.tell, "rights"):
                for finding in check_rights(self.sinks, self.settings.name):
                    self.tell(finding)
        answering = self._registries(read)
        for finding in check_record_clocks(list(self.sources.values()), time.time()):
            self.tell(finding)
        if self.sources:
            with local_kernel() as kernel:
                self._with_kernel(kernel, answering)

    def _sink(self, name: str, sink: KafkaSink) -> None:
        tables = self._tables(sink)
        cores = self.settings.cores()
        with reporting(self.tell, f"sink {sink.table}"):
            before = sink_partitions(self.settings.checkpoint, name)
            for finding in check_sink(sink, before, cores):
                self.tell(finding)
        with reporting(self.tell, f"query {name}"):
            partitions = {table: source.partitions for table, source in tables.items()}
            for finding in check_letters(sink, [s.node for s in scans(sink)], partitions):
                self.tell(finding)
        for finding in check_widths(name, list(tables.values()), cores):
            self.tell(finding)

    def _tables(self, sink: KafkaSink) -> dict[str, Source]:
        names = {scan.node.table for scan in scans(sink)}
        return {name: source for name, source in self.sources.items() if name in names}

    def _registries(self, read: Mapping[str, KafkaScan]) -> set[str]:
        """The addresses of those that answer, whose sinks' schemas are asked about too."""
        answering = set()
        sinks = list(self.sinks.values())
        for url, declared in registry_formats(list(read.values()), sinks).items():
            with reporting(self.tell, f"registry {url}"):
                found, registry = check_registry(declared)
                answering.add(url)
                self.tell(found)
                if (clock := check_registry_clock(registry, time.time())) is not None:
                    self.tell(clock)
        for sink in sinks:
            if registry_formats((), [sink]).keys() <= answering:
                with reporting(self.tell, f"sink {sink.table}"):
                    for finding in check_writer_schema(sink):
                        self.tell(finding)
        return answering

    def _with_kernel(self, kernel: Any, answering: set[str]) -> None:
        clusters = {s.scan.properties["bootstrap.servers"]: s.scan for s in self.sources.values()}
        for scan in clusters.values():
            self.tell(check_broker_clock(kernel, dict(scan.properties)))
        for table, source in self.sources.items():
            if registry_formats([source.scan], ()).keys() <= answering:
                with reporting(self.tell, f"table {table}"):
                    for finding in check_reader(kernel, source.scan):
                        self.tell(finding)
        decoded = self._samples(kernel, answering)
        paces = {table: source.pace for table, source in self.sources.items()}
        for name, sink in self.sinks.items():
            for finding in check_growth(name, sink, decoded, paces):
                self.tell(finding)

    def _samples(self, kernel: Any, answering: set[str]) -> dict[tuple[str, int], Decoded]:
        """By table and side: a table may be read twice, with other columns."""
        found: dict[tuple[str, int], Decoded] = {}
        for scan in (s.node for sink in self.sinks.values() for s in scans(sink)):
            place, source = (scan.table, scan.side), self.sources.get(scan.table)
            if place in found or source is None or not source.newest:
                continue
            if registry_formats([scan], ()).keys() <= answering:
                told, found[place] = check_sample(kernel, scan, source.newest)
                self.tell(told)
        return found
