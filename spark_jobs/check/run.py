"""Runs all checks of `rejoin check`, one after the other; none of them writes anything."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.check.checkpoint import check_checkpoint, sink_partitions
from spark_jobs.check.clock import (
    check_broker_clock,
    check_record_clocks,
    check_registry_clock,
)
from spark_jobs.check.finding import Finding, Reporter, reporting_errors
from spark_jobs.check.growth import check_growth
from spark_jobs.check.lookups import check_lookup, lookup_nodes
from spark_jobs.check.registry import (
    check_reader,
    check_registry,
    check_writer_schema,
    registry_formats,
)
from spark_jobs.check.rights import check_rights
from spark_jobs.check.sample import DecodedSample, check_sample
from spark_jobs.check.stored import local_folder, stored
from spark_jobs.check.topics import (
    SampledTable,
    check_dead_letters,
    check_sink,
    check_source,
    check_widths,
)
from spark_jobs.driver.queries import is_bounded, present, sinks_of
from spark_jobs.kernel.build import jdbc_jars
from spark_jobs.kernel.calls import Kernel
from spark_jobs.kernel.standalone import local_kernel
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.plan.planner import plan
from spark_jobs.settings import JobSettings, Overrides, job_settings, read_environment, read_sql
from spark_jobs.sql.bind.binder import bind

_NO_ANSWER = ("KAFKA_UNREACHABLE", "KAFKA_LOGIN_FAILED", "TOPIC_MISSING")


def check_job(sql_file: Path, overrides: Overrides, offline: bool, report: Reporter) -> int:
    """Returns the exit code of the worst finding. Raises RejoinError if the job has no plan."""
    worst = 0

    def add(finding: Finding) -> None:
        nonlocal worst
        worst = max(worst, finding.exit_code)
        report(finding)

    job = bind(read_sql(sql_file), str(sql_file))
    sinks = sinks_of(plan(job))
    settings = job_settings(job.settings, sql_file.stem, overrides, read_environment())
    for name, sink in sinks.items():
        with reporting_errors(add, f"query {name}"):
            ends = "ends by itself" if is_bounded(sink) else "runs until it is stopped"
            add(Finding("ok", "QUERY_PLANNED", f"query {name}", f"planned; {ends}"))
    partitions: dict[str, int | None] = {}
    folder = local_folder(settings.checkpoint)
    if overrides.checkpoint is not None or folder is None or folder.is_dir():
        about = f"checkpoint {settings.checkpoint}"
        with reporting_errors(add, about), stored(settings, offline) as files:
            queries = {name: present(sink, settings) for name, sink in sinks.items()}
            for finding in check_checkpoint(files, queries):
                add(finding)
            partitions = {name: sink_partitions(files, name) for name in sinks}
    if not offline:
        ClusterChecks(sinks, settings, partitions, add).run()
    return worst


@dataclass
class ClusterChecks:
    """The checks that need the brokers and registries of a job.

    `partitions`: of the sinks' topics when the checkpoint began, as far as it says.
    """

    sinks: Mapping[str, KafkaSink]
    settings: JobSettings
    partitions: Mapping[str, int | None]
    report: Reporter
    sources: dict[str, SampledTable] = field(default_factory=dict)
    no_answer_code: str = ""  # code of a finding that makes a check of rights pointless

    def add(self, finding: Finding) -> None:
        self.no_answer_code = finding.code if finding.code in _NO_ANSWER else self.no_answer_code
        self.report(finding)

    def add_all(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.add(finding)

    def run(self) -> None:
        read = {s.table: s for sink in self.sinks.values() for s in scans(sink)}
        for table, scan in read.items():
            with reporting_errors(self.add, f"table {table}"):
                findings, self.sources[table] = check_source(scan, self.settings.cores())
                self.add_all(findings)
        for name, sink in self.sinks.items():
            self._sink(name, sink)
        if self.no_answer_code:
            text = f"not checked because of {self.no_answer_code} above"
            self.add(Finding("warning", "RIGHTS_UNKNOWN", "rights", text))
        else:
            with reporting_errors(self.add, "rights"):
                self.add_all(check_rights(self.sinks, self.settings.name))
        answering = self._registries(read)
        self.add_all(check_record_clocks(list(self.sources.values()), time.time()))
        lookups = lookup_nodes(self.sinks.values())
        if self.sources or lookups:
            with local_kernel(*(jdbc_jars() if lookups else ())) as kernel:
                for about, (join, node) in lookups.items():
                    with reporting_errors(self.add, f"table {about}"):
                        self.add_all(check_lookup(kernel, join, node))
                self._with_kernel(kernel, answering)

    def _sink(self, name: str, sink: KafkaSink) -> None:
        tables = self._tables(sink)
        cores = self.settings.cores()
        with reporting_errors(self.add, f"sink {sink.table}"):
            self.add_all(check_sink(sink, self.partitions.get(name), cores))
        with reporting_errors(self.add, f"query {name}"):
            partitions = {table: source.partitions for table, source in tables.items()}
            self.add_all(check_dead_letters(sink, scans(sink), partitions))
        self.add_all(check_widths(name, list(tables.values()), cores))

    def _tables(self, sink: KafkaSink) -> dict[str, SampledTable]:
        names = {scan.table for scan in scans(sink)}
        return {name: source for name, source in self.sources.items() if name in names}

    def _registries(self, read: Mapping[str, KafkaScan]) -> set[str]:
        """Check registries, and the sinks' schemas there; returns the URLs that answer."""
        answering = set()
        sinks = list(self.sinks.values())
        for url, declared in registry_formats(list(read.values()), sinks).items():
            with reporting_errors(self.add, f"registry {url}"):
                found, registry = check_registry(declared)
                answering.add(url)
                self.add(found)
                if (clock := check_registry_clock(registry, time.time())) is not None:
                    self.add(clock)
        for sink in sinks:
            if registry_formats((), [sink]).keys() <= answering:
                with reporting_errors(self.add, f"sink {sink.table}"):
                    self.add_all(check_writer_schema(sink))
        return answering

    def _with_kernel(self, kernel: Kernel, answering: set[str]) -> None:
        clusters = {s.scan.properties["bootstrap.servers"]: s.scan for s in self.sources.values()}
        for scan in clusters.values():
            self.add(check_broker_clock(kernel, dict(scan.properties)))
        for table, source in self.sources.items():
            if registry_formats([source.scan], ()).keys() <= answering:
                with reporting_errors(self.add, f"table {table}"):
                    self.add_all(check_reader(kernel, source.scan))
        decoded = self._samples(kernel, answering)
        rates = {table: source.rate for table, source in self.sources.items()}
        for name, sink in self.sinks.items():
            self.add_all(check_growth(name, sink, decoded, rates))

    def _samples(self, kernel: Kernel, answering: set[str]) -> dict[tuple[str, int], DecodedSample]:
        """Decoded samples by table and side: a query may read a table twice, with other columns."""
        found: dict[tuple[str, int], DecodedSample] = {}
        for scan in (s for sink in self.sinks.values() for s in scans(sink)):
            key, source = (scan.table, scan.side), self.sources.get(scan.table)
            if key in found or source is None or not source.newest:
                continue
            if registry_formats([scan], ()).keys() <= answering:
                finding, found[key] = check_sample(kernel, scan, source.newest)
                self.add(finding)
        return found
