"""The result of sizing as text for people and as JSON for programs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from spark_jobs.options.spark import default_state_mb, overhead_mb
from spark_jobs.sizing.coefficients import Calibration
from spark_jobs.sizing.given import Given
from spark_jobs.sizing.load import DAY_S
from spark_jobs.sizing.model import Model, Size
from spark_jobs.terminal import aligned, size_text

_MB = 2**20


@dataclass(frozen=True, slots=True)
class Report:
    """The model of a job, its predictions, and what they rest on."""

    model: Model
    sizes: tuple[Size, ...]
    calibration: Calibration

    @property
    def given(self) -> Given:
        return self.model.given

    @property
    def state_memory_mb(self) -> int:
        return default_state_mb(self.given.executor.memory_mb)

    @property
    def container_mb(self) -> int:
        heap_mb = self.given.executor.memory_mb
        return heap_mb + overhead_mb(heap_mb, self.state_memory_mb)

    def cached_share(self, size: Size) -> float:
        """The part of an executor's state that its memory holds."""
        held = size.executors * self.state_memory_mb * _MB
        return min(held / size.state_bytes, 1.0) if size.state_bytes else 1.0

    def is_carried(self, size: Size) -> bool:
        return size.most_rate >= self.given.rate


def render_text(report: Report) -> str:
    """Sections as `rejoin explain` prints them."""
    sections = [
        ("Sizing", [*_asked(report), "", *_sizes(report)]),
        ("Load", _load(report)),
        ("State", _state(report)),
    ]
    if notes := list(_notes(report)):
        sections.append(("Notes", notes))
    sections.append(("What this rests on", list(_grounds(report))))
    return "\n\n".join("\n".join([f"== {title} ==", *lines]) for title, lines in sections)


def _asked(report: Report) -> Iterator[str]:
    given, executor = report.given, report.given.executor
    rates = ", ".join(
        f"{table} {number_text(n)}" for table, n in sorted(given.rows_per_second.items())
    )
    yield f"{number_text(given.rate)} records/s ({rates}), epochs of at most {given.epoch_s:g} s"
    yield (
        f"executors of {executor.cores} cores, {executor.memory_mb:,} MB of heap"
        f" ({report.container_mb:,} MB with state and overhead),"
        f" {executor.network_mbit:,.0f} Mbit/s"
    )


def _sizes(report: Report) -> list[str]:
    rows = [["executors", *(str(size.executors) for size in report.sizes)]]
    for label, cell in _lines(report):
        rows.append([label, *(cell(size) for size in report.sizes)])
    return aligned(rows, frozenset(range(1, len(report.sizes) + 1)))


def _lines(report: Report) -> Iterator[tuple[str, Callable[[Size], str]]]:
    yield "cores", lambda size: f"{size.cores:,}"
    yield "cores that the load needs", lambda size: _cores(size.cores_needed)
    yield "an epoch takes, s", lambda size: f"{size.epoch_s:.2f}"
    yield "state on disk per executor", lambda size: size_text(size.state_bytes / size.executors)
    yield "of it in memory", lambda size: f"{report.cached_share(size):.0%}"
    yield "heap per executor", lambda size: size_text(size.heap_mb * _MB)
    yield "network per executor and second", lambda size: size_text(size.network_bytes)
    for limit in report.sizes[0].rates:
        yield f"most records/s by {limit}", partial(_rate_by, report, limit)
    yield "most records/s", lambda size: _rate(report, size.most_rate)
    yield "first limit", lambda size: size.first_limit
    yield "carries the load", lambda size: "yes" if report.is_carried(size) else "no"


def _load(report: Report) -> list[str]:
    rate, traffic = report.given.rate, report.model.traffic()
    rows = [["", "per record", "per second", "per day"]]
    for label, count in (
        ("read from Kafka", traffic.kafka_in),
        ("written to Kafka", traffic.kafka_out),
        ("through exchanges", traffic.shuffle),
        ("to the checkpoint (changelog)", traffic.checkpoint),
    ):
        rows.append(
            [label, f"{count / rate:,.0f} bytes", size_text(count), size_text(count * DAY_S)]
        )
    cpu_us = report.model.cpu_s() / (rate * report.given.epoch_s) * 1e6
    rows.append(["processor time", f"{cpu_us:.1f} us", "", ""])
    return aligned(rows, frozenset({1, 2, 3}))


def _state(report: Report) -> list[str]:
    rows = [
        [side.side, f"{number_text(side.rows)} rows", f"x {side.bytes_each:.0f} bytes",
         size_text(side.bytes), "per day, without end" if side.grows else side.formula]
        for operator in report.model.operators
        for side in operator.state
    ]  # fmt: skip
    lines = aligned(rows, frozenset({1, 2, 3})) if rows else ["none of a known size"]
    ratio = report.calibration.coefficients.state_ratio
    return [*lines, f"on disk {ratio:g} times that: {size_text(report.model.state_bytes * ratio)}"]


def _notes(report: Report) -> Iterator[str]:
    model, given, bounds = report.model, report.given, report.model.bounds
    most = max(size.cores for size in report.sizes)
    if not bounds.parallelism and most > bounds.key_groups:
        yield (
            f"- {most} cores are more than the {bounds.key_groups} key groups, and a job with more"
            " tasks than key groups does not start; they are fixed at the first start:"
        )
        yield f"    SET 'rejoin.key-groups' = '{2 ** math.ceil(math.log2(most))}';"
    if any(size.first_limit == "epoch length" for size in report.sizes):
        fixed_s = max(model.fixed_s(size.cores) for size in report.sizes)
        yield f"- an epoch takes {fixed_s:.2f} s without a record: give a longer --epoch-seconds"
    if any(size.first_limit == "records per epoch" for size in report.sizes):
        yield f"- an epoch reads at most {bounds.max_offsets:,} records of a table:"
        yield "    SET 'rejoin.max-offsets-per-trigger' = '...', or a shorter --epoch-seconds"
    if not given.partitions:
        yield "- source partitions count as ample; --partitions TABLE=N says how many there are"
    if any(side.grows for operator in model.operators for side in operator.state):
        yield "- state that grows without end is that of a day; set a TTL (docs/tuning.md)"
    if short := [str(s.executors) for s in report.sizes if report.cached_share(s) < 1]:
        yield (
            f"- the state is larger than its memory (executors: {', '.join(short)}): rows of"
            " keys that are not in it cost more than was measured"
        )
    unlike = sorted({op.id for op in model.operators if not op.is_measured})
    if unlike:
        yield f"- not measured, counted as the nearest join: {', '.join(unlike)}"


def _grounds(report: Report) -> Iterator[str]:
    known = report.calibration
    if known.measured is None:
        yield "No runs were measured for this model yet. Its constants and their sources:"
    else:
        run = known.measured
        yield f"Runs of {run.at} at commit {run.commit} on {run.machine} (docs/tuning.md)."
        if known.not_fitted:
            yield "These constants are not fitted to them:"
    if known.not_fitted:
        yield from aligned([[f"  {name}", why] for name, why in known.not_fitted.items()])
    if known.largest_error is not None:
        points = len({figure.point for figure in known.held_out})
        yield (
            f"Largest error on {points} runs that the fit has not seen:"
            f" {known.largest_error:.0%}; more than two executors were not measured."
        )
    texts = sorted({report.given.text_size(table) for table in report.given.rows_per_second})
    sizes = " and ".join(f"{size:g}" for size in texts)
    yield f"Texts count as {sizes} bytes, keys as equally frequent."


def render_json(report: Report) -> dict[str, object]:
    """The same figures without rounding; bytes, seconds and records per second."""
    model, given = report.model, report.given
    traffic = model.traffic()
    return {
        "version": 1,
        "records_per_second": dict(given.rows_per_second),
        "epoch_s": given.epoch_s,
        "cpu_s_per_record": model.cpu_s() / (given.rate * given.epoch_s),
        "bytes_per_second": {
            "kafka_in": traffic.kafka_in,
            "kafka_out": traffic.kafka_out,
            "shuffle": traffic.shuffle,
            "checkpoint": traffic.checkpoint,
        },
        "state": [
            {
                "side": s.side,
                "rows": s.rows,
                "bytes_each": s.bytes_each,
                "grows_without_end": s.grows,
            }
            for operator in model.operators
            for s in operator.state
        ],
        "sizes": [_size_json(report, size) for size in report.sizes],
        "measured": _measured_json(report.calibration),
        "rests_on": dict(report.calibration.rests_on),
        "largest_held_out_error": report.calibration.largest_error,
    }


def _size_json(report: Report, size: Size) -> dict[str, object]:
    return {
        "executors": size.executors,
        "cores": size.cores,
        "cores_needed": _finite(size.cores_needed),
        "epoch_s": size.epoch_s,
        "state_bytes_per_executor": size.state_bytes / size.executors,
        "rocksdb_memory_share": report.cached_share(size),
        "heap_bytes_per_executor": size.heap_mb * _MB,
        "network_bytes_per_second_per_executor": size.network_bytes,
        "most_records_per_second": size.most_rate,
        "most_records_per_second_by_limit": dict(size.rates),
        "first_limit": size.first_limit,
        "carries_the_load": report.is_carried(size),
    }


def _measured_json(known: Calibration) -> dict[str, str] | None:
    run = known.measured
    return None if run is None else {"at": run.at, "commit": run.commit, "machine": run.machine}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _cores(count: float) -> str:
    return f"{count:,.1f}" if math.isfinite(count) else "none is enough"


def _rate_by(report: Report, limit: str, size: Size) -> str:
    return _rate(report, size.rates[limit])


def _rate(report: Report, rate: float) -> str:
    return "no limit" if rate > 1e5 * report.given.rate else number_text(rate)


def number_text(number: float) -> str:
    """Three digits, as a prediction deserves.

    >>> number_text(123_456), number_text(12.0), number_text(1.2345)
    ('123,000', '12', '1.23')
    """
    if number < 1000:
        return f"{number:.3g}"
    return f"{round(number, 3 - len(str(int(number)))):,.0f}"
