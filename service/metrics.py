"""All metrics of the sidecar: names, labels, help texts and values."""

import gzip
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from service.driver import Driver, DriverView
from spark_jobs.status import (
    LATENCY_BOUNDS_MS,
    JobStatus,
    LatencyStatus,
    LookupStatus,
    QueryStatus,
    SourceStatus,
)

Sample: TypeAlias = tuple[str, tuple[str, ...], float | LatencyStatus]
_Values: TypeAlias = dict[tuple[str, ...], float | LatencyStatus]
_BOUNDS = (*map(str, LATENCY_BOUNDS_MS), "+Inf")  # names of the counts in a status
_MAX_LABEL_CHARS = 200
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """Name, help text and labels of a metric; `is_of_clock`: it changes between two statuses."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    is_of_clock: bool = False

    @property
    def kind(self) -> Literal["counter", "gauge", "histogram"]:
        if self.name == LATENCY:
            return "histogram"
        return "counter" if self.name.endswith("_total") else "gauge"


LATENCY = "rejoin_result_latency_seconds"
_QUERY = ("query",)
_PARTITION = ("query", "table", "topic", "partition")
_OPERATOR = ("query", "operator", "kind")

METRICS: tuple[MetricInfo, ...] = (
    MetricInfo(
        "rejoin_build_info",
        "Always 1; the labels have the release of the driver and the name of the job.",
        ("version", "name"),
    ),
    MetricInfo(
        "rejoin_job_state_info",
        "1 for the job's state: starting, running, draining, stopped or failed.",
        ("state",),
    ),
    MetricInfo(
        "rejoin_job_error_info",
        "1 if the job has failed; docs/errors.md lists the codes.",
        ("code",),
    ),
    MetricInfo("rejoin_job_start_timestamp_seconds", "Start of the driver, in Unix time."),
    MetricInfo(
        "rejoin_status_age_seconds",
        "Age of the last good status; grows if the driver has stopped writing it.",
        is_of_clock=True,
    ),
    MetricInfo(
        "rejoin_registry_waiting_seconds",
        "How long epochs have waited for a schema registry that does not answer; 0 if none waits.",
        is_of_clock=True,
    ),
    MetricInfo(
        "rejoin_status_errors_total",
        "Reads of the status file that found it unreadable.",
        is_of_clock=True,
    ),
    MetricInfo("rejoin_epochs_total", "Epochs committed since the checkpoint began.", _QUERY),
    MetricInfo(
        "rejoin_input_rows_total",
        "Rows that the query read, and records that it could not read, since the checkpoint began.",
        _QUERY,
    ),
    MetricInfo(
        "rejoin_partial_update_rows_total",
        "Updates whose Debezium events leave out values that did not change: they have them from"
        " the row before. A repeated epoch counts again.",
        _QUERY,
    ),
    MetricInfo(
        "rejoin_output_rows_total",
        "Records written to the sink since the checkpoint began.",
        _QUERY,
    ),
    MetricInfo(
        LATENCY,
        "Time from the newest input record behind a result to the commit of the result. See below.",
        _QUERY,
    ),
    MetricInfo(
        "rejoin_output_changes_total",
        "Changes of the result by row kind (+I, -U, +U, -D); -U and -D retract rows. A repeated"
        " epoch counts again.",
        ("query", "kind"),
    ),
    MetricInfo(
        "rejoin_sink_transactions_total",
        "Transactions of the sink's writers, one per writer and epoch, by outcome: committed or"
        " aborted.",
        ("query", "outcome"),
    ),
    MetricInfo(
        "rejoin_registry_calls_total",
        "Requests to schema registries by outcome: answered or failed. Schemas are cached.",
        ("outcome",),
    ),
    MetricInfo(
        "rejoin_overflow_files_total",
        "Files of results of an epoch that did not fit into memory. Their tasks delete them.",
    ),
    MetricInfo(
        "rejoin_rejected_records_total",
        "Records that could not become rows and were dead-lettered or skipped, by reason.",
        ("query", "reason"),
    ),
    MetricInfo("rejoin_late_rows_total", "Rows that arrived behind the watermark.", _QUERY),
    MetricInfo(
        "rejoin_operator_late_rows_total",
        "Rows that arrived behind the watermark, by operator.",
        _OPERATOR,
    ),
    MetricInfo("rejoin_query_restarts_total", "Restarts of a failed query by the driver.", _QUERY),
    MetricInfo(
        "rejoin_lost_records_total",
        "Records that were deleted before they were read, if the job continues after data loss.",
        _QUERY,
    ),
    MetricInfo("rejoin_epoch_duration_seconds", "Duration of the last epoch.", _QUERY),
    MetricInfo(
        "rejoin_epoch_phase_duration_seconds",
        "Duration of each phase of the last epoch, by Spark's name of the phase.",
        ("query", "phase"),
    ),
    MetricInfo(
        "rejoin_source_lag_records",
        "Offsets between the next record to read and the end of the partition.",
        _PARTITION,
    ),
    MetricInfo(
        "rejoin_source_watermark_timestamp_seconds",
        "Watermark of a partition: the event time up to which it is complete.",
        _PARTITION,
    ),
    MetricInfo(
        "rejoin_watermark_timestamp_seconds",
        "Watermark of a query: the event time up to which its result is complete.",
        _QUERY,
    ),
    MetricInfo(
        "rejoin_event_time_lag_seconds",
        "How far the query's watermark is behind the clock; grows while no event times arrive.",
        _QUERY,
        is_of_clock=True,
    ),
    MetricInfo(
        "rejoin_unknown_retraction_rows_total",
        "Retractions of rows that are not in the operator's state; they are ignored.",
        _OPERATOR,
    ),
    MetricInfo(
        "rejoin_bootstrap_waiting_rows",
        "Rows that wait until the build side of a processing-time join is loaded.",
        _OPERATOR,
    ),
    MetricInfo(
        "rejoin_lookup_keys_total",
        "Keys that a lookup join had answered by its cache or its database, each once per task and"
        " epoch.",
        (*_OPERATOR, "by"),
    ),
    MetricInfo(
        "rejoin_lookup_queries_total", "Queries of a lookup join that were answered.", _OPERATOR
    ),
    MetricInfo(
        "rejoin_lookup_query_errors_total",
        "Queries of a lookup join that failed, by outcome: retried, or failed with their epoch.",
        (*_OPERATOR, "outcome"),
    ),
    MetricInfo(
        "rejoin_lookup_wait_seconds_total",
        "How long tasks waited for the answers to their lookups, in sum.",
        _OPERATOR,
    ),
    MetricInfo(
        "rejoin_state_rows", "Rows of one input that an operator keeps.", (*_OPERATOR, "side")
    ),
    MetricInfo(
        "rejoin_state_bytes",
        "Size of an operator's state: RocksDB's files and memory, as of its last snapshot.",
        _OPERATOR,
    ),
)
_STATUS_METRICS = tuple(metric for metric in METRICS if not metric.is_of_clock)
_CLOCK_METRICS = tuple(metric for metric in METRICS if metric.is_of_clock)


class Exposition:
    """The body of a scrape, plain or compressed, cached between scrapes.

    Metrics of the status are rendered when the status changes, those of the clock every `FRESH_S`.
    """

    FRESH_S = 0.25
    _COMPRESSION = 1  # mostly repeated names: a higher level gains nothing

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._status: JobStatus | None = None
        self._status_text = _render(_STATUS_METRICS, ())
        self._rendered_s = float("-inf")
        self._text = b""
        self._compressed: bytes | None = None

    def text(self) -> bytes:
        with self._lock:
            self._refresh()
            return self._text

    def compressed(self) -> bytes:
        """The body in gzip."""
        with self._lock:
            self._refresh()
            if self._compressed is None:
                self._compressed = gzip.compress(self._text, self._COMPRESSION)
            return self._compressed

    def _refresh(self) -> None:
        if time.monotonic() - self._rendered_s < self.FRESH_S:
            return
        view = self._driver.look()
        if view.status is not self._status:
            self._status = view.status
            self._status_text = _render(_STATUS_METRICS, _status_samples(view.status))
        samples = _clock_samples(view, self._driver.read_errors)
        self._text = self._status_text + _render(_CLOCK_METRICS, samples)
        self._compressed = None
        self._rendered_s = time.monotonic()


class _Families(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


def _render(metrics: Sequence[MetricInfo], samples: Iterable[Sample]) -> bytes:
    values: dict[str, _Values] = {m.name: {} for m in metrics}
    for name, labels, value in samples:
        # by label set: a status file that names a query twice must not break the scrape
        values[name][tuple(label[:_MAX_LABEL_CHARS] for label in labels)] = value
    return generate_latest(_Families([_family(metric, values[metric.name]) for metric in metrics]))


def _family(metric: MetricInfo, values: _Values) -> Metric:
    if metric.kind == "histogram":
        return _histogram(metric, values)
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in values.items():
        if not isinstance(value, LatencyStatus):
            # a status file with negative counts must not break the scrape either
            family.add_metric(labels, max(value, 0) if metric.kind == "counter" else value)
    return family


def _histogram(metric: MetricInfo, values: _Values) -> Metric:
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, found in values.items():
        if isinstance(found, LatencyStatus):
            counts = [max(found.counts.get(bound, 0), 0) for bound in _BOUNDS]
            seconds = [str(ms / _MS) for ms in LATENCY_BOUNDS_MS]
            buckets = list(zip((*seconds, "+Inf"), accumulate(counts), strict=True))
            family.add_metric(labels, buckets, sum_value=max(found.sum_ms, 0) / _MS)
    return family


def _clock_samples(view: DriverView, read_errors: int) -> Iterator[Sample]:
    yield "rejoin_status_errors_total", (), read_errors
    if view.age_s is not None:
        yield "rejoin_status_age_seconds", (), view.age_s
    if view.status is None:
        return
    since = view.status.registry_waiting_since
    waiting_s = 0.0 if since is None else max(time.time() - since.timestamp(), 0.0)
    yield "rejoin_registry_waiting_seconds", (), waiting_s
    for query in view.status.queries:
        if query.watermark_ms is not None:
            # ended inputs have a watermark far in the future
            behind_s = max(time.time() - query.watermark_ms / _MS, 0.0)
            yield "rejoin_event_time_lag_seconds", (query.name,), behind_s


def _status_samples(status: JobStatus | None) -> Iterator[Sample]:
    if status is None:
        return
    yield "rejoin_build_info", (status.build.version, status.job), 1
    yield "rejoin_job_state_info", (status.state,), 1
    yield "rejoin_job_start_timestamp_seconds", (), status.started_at.timestamp()
    failures = max(status.registry_failures_total, 0)
    answered = status.registry_calls_total - failures
    yield "rejoin_registry_calls_total", ("answered",), answered
    yield "rejoin_registry_calls_total", ("failed",), failures
    yield "rejoin_overflow_files_total", (), status.overflow_files_total
    if status.error is not None:
        yield "rejoin_job_error_info", (status.error.code,), 1
    if status.state == "starting":  # totals are unknown until the checkpoints are open
        return
    for query in status.queries:
        yield from _query_samples(query)
        for source in query.sources:
            yield from _source_samples(query.name, source)


def _query_samples(query: QueryStatus) -> Iterator[Sample]:
    one = (query.name,)
    yield "rejoin_epochs_total", one, query.epochs_total
    yield "rejoin_input_rows_total", one, query.input_rows_total
    yield "rejoin_partial_update_rows_total", one, query.partial_update_rows_total
    yield "rejoin_output_rows_total", one, query.output_rows_total
    yield LATENCY, one, query.latency
    yield "rejoin_late_rows_total", one, query.late_rows_total
    yield "rejoin_query_restarts_total", one, query.restarts_total
    yield "rejoin_lost_records_total", one, query.lost_records_total
    yield "rejoin_epoch_duration_seconds", one, query.trigger_ms / _MS
    if query.watermark_ms is not None:
        yield "rejoin_watermark_timestamp_seconds", one, query.watermark_ms / _MS
    for kind, count in query.changes.items():
        yield "rejoin_output_changes_total", (query.name, kind), count
    outcomes = "rejoin_sink_transactions_total"
    yield outcomes, (query.name, "committed"), query.transactions_committed_total
    yield outcomes, (query.name, "aborted"), query.transactions_aborted_total
    for reason, count in query.rejects.items():
        yield "rejoin_rejected_records_total", (query.name, reason), count
    for phase, duration_ms in query.durations_ms.items():
        yield "rejoin_epoch_phase_duration_seconds", (query.name, phase), duration_ms / _MS
    for operator in query.operators:
        labels = (query.name, operator.id, operator.kind)
        yield "rejoin_operator_late_rows_total", labels, operator.late_rows
        yield "rejoin_unknown_retraction_rows_total", labels, operator.unknown_retractions
        if operator.bootstrap is not None:
            yield "rejoin_bootstrap_waiting_rows", labels, operator.bootstrap.waiting_rows
        if operator.lookups is not None:
            yield from _lookup_samples(labels, operator.lookups)
        yield "rejoin_state_bytes", labels, operator.state_bytes
        for side in operator.sides:
            yield "rejoin_state_rows", (*labels, side.side), side.rows


def _lookup_samples(labels: tuple[str, ...], lookups: LookupStatus) -> Iterator[Sample]:
    yield "rejoin_lookup_keys_total", (*labels, "cache"), lookups.keys_cached
    yield "rejoin_lookup_keys_total", (*labels, "database"), lookups.keys_asked
    yield "rejoin_lookup_queries_total", labels, lookups.queries
    yield "rejoin_lookup_query_errors_total", (*labels, "retried"), lookups.retries
    yield "rejoin_lookup_query_errors_total", (*labels, "failed"), lookups.failures
    yield "rejoin_lookup_wait_seconds_total", labels, lookups.waited_ms / _MS


def _source_samples(query: str, source: SourceStatus) -> Iterator[Sample]:
    for part in source.partitions:
        labels = (query, source.table, source.topic, str(part.partition))
        yield "rejoin_source_lag_records", labels, part.lag_records
        if part.watermark_ms is not None:
            at = part.watermark_ms / _MS
            yield "rejoin_source_watermark_timestamp_seconds", labels, at
