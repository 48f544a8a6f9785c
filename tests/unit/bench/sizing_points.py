"""Points as runs would show them if the model with these coefficients were right."""

from dataclasses import replace

from bench.sizing.fit import cpu_s, model_of
from bench.sizing.points import CORES, Point, Setup
from spark_jobs.sizing.coefficients import Coefficients

KNOWN = Coefficients(
    regular_row_us=4.0,
    temporal_row_us=5.0,
    interval_row_us=7.0,
    record_byte_ns=12.0,
    touched_key_us=2.0,
    result_us=3.0,
    executor_row_us=0.5,
    task_cpu_ms=8.0,
    read_share=0.4,
    epoch_s=0.3,
    driver_task_ms=2.0,
    task_wait_ms=4.0,
    wait_factor=1.2,
    shuffle_row_bytes=6.0,
    shuffle_ratio=0.7,
    regular_changelog_ratio=0.5,
    temporal_changelog_ratio=0.6,
    interval_changelog_ratio=0.8,
    state_ratio=1.7,
    kafka_in_ratio=0.45,
    kafka_out_ratio=0.35,
    heap_record_bytes=1024.0,
    heap_base_mb=300.0,
)
BROKER_US = 0.5
TABLES = {
    "regular": ("orders_a", "orders_b"),
    "temporal": ("orders", "prices"),
    "interval": ("purchases", "parcels"),
}


def made_up(setup: Setup, known: Coefficients = KNOWN, epochs: int = 10) -> Point:
    """What a run would show if the model with these coefficients were right."""
    rows = dict.fromkeys(TABLES[setup.job], setup.offsets * epochs)
    empty = Point(
        setup, epochs, 1.0, rows, 0.0, dict.fromkeys(rows, 40.0 + setup.note_bytes),
        {TABLES[setup.job][0]: float(setup.note_bytes)}, 1.0, 0.5, 1.0, known.read_share,
        0, 0, 0.0, 0.0, {}, 0, 0, 20.0,
    )  # fmt: skip
    model = model_of(empty, known)
    # an inner join writes less than the model would guess
    results = model.results() * epochs * (0.3 if setup.inner else 1.0)
    model = model_of(empty, known, results / epochs)
    traffic, job_s = model.traffic(), cpu_s(model) * epochs
    broker_s = BROKER_US * (empty.rows_in + results) / 1e6
    waits = model.fixed_s(CORES) * epochs
    return replace(
        empty,
        seconds=waits + known.wait_factor * (job_s + broker_s) / CORES,
        results=results,
        job_cpu_s=job_s,
        driver_cpu_s=epochs * (0.05 + known.driver_task_ms / 1e3 * model.tasks(CORES)),
        broker_cpu_s=broker_s,
        shuffle_bytes=round(traffic.shuffle * epochs),
        changelog_bytes=round(traffic.checkpoint * epochs),
        kafka_in_bytes=traffic.kafka_in * epochs,
        kafka_out_bytes=traffic.kafka_out * epochs,
    )
