"""Runs one benchmark with a new broker: load, run, verify, then compare times."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.engines import PARALLELISM, Engine, Flink, Folders, Rejoin
from bench.jobs import JOBS, BenchJob, JobName, render
from bench.load import BenchData, create_topics, load
from bench.measure import Measurement, SinkProgress, run_measured
from bench.results import Folded, in_micros, verified
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer

WORK = Path(__file__).resolve().parents[1] / "build" / "bench"
_BROKER_HEAP = "1g"

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What to run; `settings` has additional SET statements by engine."""

    job: JobName
    rows: int
    keys: int
    engines: tuple[str, ...]
    settings: Mapping[str, Mapping[str, str]]
    timeout_s: float
    keep: bool


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The figures of one engine, whose result has been verified."""

    engine: str
    seconds: float
    rows_per_second: float
    warm_rows_per_second: float
    peak_rss_bytes: int
    peak_state_bytes: int
    output_records: int
    output_rows: int


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The figures of a benchmark. `speedup` is Flink's time divided by rejoin's."""

    job: str
    title: str
    rows: int
    keys: int
    parallelism: int
    load_rows_per_second: float
    engines: tuple[EngineReport, ...]
    speedup: float | None


@dataclass(frozen=True, slots=True)
class _Kafka:
    bootstrap_servers: str
    registry_url: str


def run_bench(plan: BenchPlan, say: Say) -> BenchReport:
    """Load the topics once, run the engines one after the other, verify and report."""
    job = JOBS[plan.job]
    engines = [_engine(name, plan.settings.get(name, {})) for name in plan.engines]
    for engine in engines:
        engine.prepare()
    use_cores(PARALLELISM)
    with _work_folder(plan) as work, _embedded_kafka(work) as kafka:
        data = job.data(plan.rows, plan.keys)
        load_rate = data.rows / load(data, kafka.bootstrap_servers, kafka.registry_url)
        say(f"loaded {data.rows:,} records at {load_rate:,.0f} per second")
        measured: list[Measurement] = []
        for engine in engines:
            say(f"{engine.name} runs ...")
            folders = Folders(work / engine.name)
            measured.append(_run_engine(engine, job, kafka, folders, plan.timeout_s))
            say(f"{engine.name} ended after {measured[-1].seconds:.1f} s")
        results = _verified_results(job, data, kafka, engines, say)
    reports = tuple(
        _engine_report(engine, plan.rows, measurement, result)
        for engine, measurement, result in zip(engines, measured, results, strict=True)
    )
    return BenchReport(
        job=job.name,
        title=job.title,
        rows=plan.rows,
        keys=plan.keys,
        parallelism=PARALLELISM,
        load_rows_per_second=load_rate,
        engines=reports,
        speedup=_speedup(reports),
    )


def _engine(name: str, overrides: Mapping[str, str]) -> Engine:
    return Flink(overrides) if name == Flink.name else Rejoin(overrides)


def use_cores(count: int) -> None:
    """Limit this process and its children, including the broker, to these cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


@contextmanager
def _work_folder(plan: BenchPlan) -> Iterator[Path]:
    work = WORK / plan.job
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    yield work
    if not plan.keep:  # not reached after a failure, which keeps the logs
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _embedded_kafka(work: Path) -> Iterator[_Kafka]:
    with (
        Broker(work / "kafka", heap=_BROKER_HEAP) as broker,
        RegistryServer(work / "schemas") as registry,
    ):
        yield _Kafka(broker.bootstrap_servers, registry.url)


def _sink_topic(engine: Engine) -> str:
    return f"result_{engine.name}"


def _run_engine(
    engine: Engine, job: BenchJob, kafka: _Kafka, folders: Folders, timeout_s: float
) -> Measurement:
    topic = _sink_topic(engine)
    create_topics(kafka.bootstrap_servers, [topic])
    folders.root.mkdir()
    settings = engine.settings(folders)
    text = render(job, settings, topic, kafka.bootstrap_servers, kafka.registry_url)
    folders.job.write_text(text, encoding="utf-8")
    progress = SinkProgress(kafka.bootstrap_servers, topic)
    try:
        command = engine.command(folders)
        return run_measured(command, folders.log, folders.state, progress, timeout_s)
    finally:
        progress.close()


def _verified_results(
    job: BenchJob, data: BenchData, kafka: _Kafka, engines: Sequence[Engine], say: Say
) -> list[Folded]:
    """The result of each engine; raises BenchError unless all are as expected."""
    expected = in_micros(data.expected(), job.sink_columns)
    results = []
    for engine in engines:
        servers, registry_url = kafka.bootstrap_servers, kafka.registry_url
        results.append(verified(job, expected, servers, registry_url, _sink_topic(engine)))
        say(f"{engine.name}: {len(results[-1].rows):,} rows, each as expected")
    return results


def _engine_report(
    engine: Engine, rows: int, measured: Measurement, result: Folded
) -> EngineReport:
    return EngineReport(
        engine=engine.name,
        seconds=round(measured.seconds, 2),
        rows_per_second=round(rows / measured.seconds),
        warm_rows_per_second=round(rows * measured.warm_share_per_s),
        peak_rss_bytes=measured.peak_rss_bytes,
        peak_state_bytes=measured.peak_state_bytes,
        output_records=result.records,
        output_rows=len(result.rows),
    )


def _speedup(reports: Sequence[EngineReport]) -> float | None:
    seconds = {report.engine: report.seconds for report in reports}
    if Rejoin.name not in seconds or Flink.name not in seconds:
        return None
    return round(seconds[Flink.name] / seconds[Rejoin.name], 2)
