"""The exposition: names by the rules, one help per name, valid whatever the status holds."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

import service.metrics
from service.metrics import LATENCY, METRICS, Exposition
from service.metrics_page import metrics_page
from spark_jobs.status import (
    LATENCY_BOUNDS_MS,
    BootstrapStatus,
    JobStatus,
    LatencyStatus,
    LookupStatus,
    QueryStatus,
)

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
UNITS = ("seconds", "bytes", "rows", "records", "epochs", "errors", "restarts", "info", "changes",
    "transactions", "calls", "keys", "queries", "files")  # fmt: skip
Write = Callable[[JobStatus | bytes], None]
Job = Callable[..., JobStatus]


def exposed(client: TestClient) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in families:
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            series = found.setdefault(sample.name, {})
            assert labels not in series, "a series twice makes the scrape invalid"
            series[labels] = sample.value
    return found


def test_the_page_is_in_step() -> None:
    assert PAGE.read_text(encoding="utf-8") == metrics_page()


def test_names_follow_the_rules() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"rejoin_[a-z]+(_[a-z]+)*", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.name.removesuffix("_total").endswith(UNITS)
        assert metric.help.endswith(".")
        assert "job" not in metric.labels, "Prometheus names its targets so"


def test_every_metric_has_a_value(client: TestClient, write: Write, job: Job) -> None:
    query = job().queries[0]
    waiting = BootstrapStatus(
        partitions_loaded=0, partitions_total=1, waiting_rows=6, complete=False
    )
    asked = LookupStatus(keys_cached=5, keys_asked=3, queries=2, retries=1, waited_ms=1_500)
    shown = {"bootstrap": waiting, "lookups": asked}
    operators = (query.operators[0].model_copy(update=shown),)
    failed = job(
        queries=(query.model_copy(update={"watermark_ms": 1_000, "operators": operators}),),
        registry_calls_total=9,
        registry_failures_total=2,
        state="failed",
        error={"code": "X", "message": "y"},
    )
    write(failed)
    found = exposed(client)
    names = {m.name for m in METRICS if m.kind != "histogram"}
    assert set(found) == names | {f"{LATENCY}_{part}" for part in ("bucket", "count", "sum")}
    lag = found["rejoin_source_lag_records"]
    assert {dict(labels)["partition"]: value for labels, value in lag.items()} == {"0": 4, "1": 0}
    rows = found["rejoin_state_rows"]
    assert {dict(labels)["side"]: value for labels, value in rows.items()} == {
        "left": 7,
        "right": 2,
    }
    assert list(found["rejoin_source_watermark_timestamp_seconds"].values()) == [1_704_067_200]
    assert list(found["rejoin_epoch_duration_seconds"].values()) == [0.25]
    keys = found["rejoin_lookup_keys_total"]
    assert {dict(labels)["by"]: value for labels, value in keys.items()} == {
        "cache": 5,
        "database": 3,
    }
    errors = found["rejoin_lookup_query_errors_total"]
    assert {dict(labels)["outcome"]: value for labels, value in errors.items()} == {
        "retried": 1,
        "failed": 0,
    }
    assert list(found["rejoin_lookup_queries_total"].values()) == [2]
    assert list(found["rejoin_lookup_wait_seconds_total"].values()) == [1.5]


def test_latencies_are_a_histogram(client: TestClient, write: Write, job: Job) -> None:
    counts = {"100": 5, "250": 3, "+Inf": 2, "a bound of tomorrow": 7}
    latency = LatencyStatus(counts=counts, sum_ms=9_500_000)
    write(job(queries=(job().queries[0].model_copy(update={"latency": latency}),)))
    found = exposed(client)
    buckets = {dict(labels)["le"]: n for labels, n in found[f"{LATENCY}_bucket"].items()}
    assert [buckets[le] for le in ("0.06", "0.1", "0.15", "0.25", "3600.0", "+Inf")] == [
        0, 5, 5, 8, 8, 10,
    ]  # fmt: skip
    assert len(buckets) == len(LATENCY_BOUNDS_MS) + 1
    assert list(found[f"{LATENCY}_count"].values()) == [10]
    assert list(found[f"{LATENCY}_sum"].values()) == [9_500.0]
    assert f"# TYPE {LATENCY} histogram" in client.get("/metrics").text


@pytest.mark.parametrize(("state", "known"), [("starting", False), ("running", True)])
def test_totals_are_told_once_they_are_known(
    client: TestClient, write: Write, job: Job, state: str, known: bool
) -> None:
    """Zero and then the checkpoint's totals would be a leap to Prometheus."""
    write(job(state=state))
    assert ("rejoin_epochs_total" in exposed(client)) == known


def test_what_is_counted_apart(client: TestClient, write: Write, job: Job) -> None:
    write(job(registry_calls_total=9, registry_failures_total=2, overflow_files_total=3))
    found = exposed(client)
    assert list(found["rejoin_overflow_files_total"].values()) == [3]
    changes = found["rejoin_output_changes_total"]
    assert {dict(labels)["kind"]: value for labels, value in changes.items()} == {
        "+I": 80,
        "-U": 5,
        "+U": 5,
    }
    ended = found["rejoin_sink_transactions_total"]
    assert {dict(labels)["outcome"]: value for labels, value in ended.items()} == {
        "committed": 8,
        "aborted": 1,
    }
    calls = found["rejoin_registry_calls_total"]
    assert {dict(labels)["outcome"]: value for labels, value in calls.items()} == {
        "answered": 7,
        "failed": 2,
    }


def test_rendered_once_per_status(
    client: TestClient, write: Write, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Exposition, "FRESH_S", 0.0)
    rendered: list[object] = []
    original = service.metrics._status_samples
    monkeypatch.setattr(
        service.metrics, "_status_samples", lambda s: rendered.append(s) or original(s)
    )
    first = job(updated_at=datetime.now(UTC) - timedelta(seconds=5))
    write(first)
    ages = [exposed(client)["rejoin_status_age_seconds"][()] for _ in range(3)]
    assert ages == sorted(set(ages)), "an age goes on between two words of the driver"
    assert rendered == [first]
    write(job(state="stopped"))
    assert (("state", "stopped"),) in exposed(client)["rejoin_job_state_info"]
    assert len(rendered) == 2


def test_compressed_for_who_asks(client: TestClient, write: Write, job: Job) -> None:
    write(job())
    plain = client.get("/metrics", headers={"Accept-Encoding": "identity"})
    packed = client.get("/metrics", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) < len(plain.content) / 3
    assert packed.content == plain.content


def test_a_hostile_status_stays_one_valid_scrape(
    client: TestClient, write: Write, job: Job
) -> None:
    name = 'a"}\n# HELP x\\' + "y" * 1_000
    query = QueryStatus(name=name, sink="s", input_rows_total=-5, rejects={name: 1})
    write(job(queries=(query, query)))
    found = exposed(client)
    assert list(found["rejoin_input_rows_total"].values()) == [0]
    assert all(
        len(value) <= 200 for labels in found["rejoin_input_rows_total"] for _, value in labels
    )
