"""Fits the coefficients of the sizing model to measured points, and says how far off it is.

The features are the model's own: a coefficient's feature is what the model predicts if it is 1 and
all others are 0. Each equation is divided by what was measured, so that errors count as shares.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import TypeAlias

from bench.sizing.points import CORES, Point
from bench.workloads.workload import render
from spark_jobs.plan.nodes.physical import QueryPlan
from spark_jobs.plan.text.explain import planned
from spark_jobs.sizing.coefficients import (
    FITTED,
    Calibration,
    Coefficients,
    HeldOut,
    Measured,
)
from spark_jobs.sizing.given import Given
from spark_jobs.sizing.load import query_load
from spark_jobs.sizing.model import Bounds, Model
from spark_jobs.sql.bind.binder import BoundQuery, Job

_SWEEPS = 20_000
_SETTLED = 1e-13
_NONE = Coefficients(**dict.fromkeys((f.name for f in fields(Coefficients)), 0.0))

Figure: TypeAlias = Callable[[Model], float]
"""What a model predicts for an epoch."""


@dataclass(frozen=True, slots=True)
class Group:
    """Coefficients that are fitted together to one measured figure, per epoch."""

    names: tuple[str, ...]
    predicted: Figure
    measured: Callable[[Point], float]


def model_of(point: Point, known: Coefficients, results: float | None = None) -> Model:
    """A point's job as the model sees it, an epoch being a second; `results` are of an epoch."""
    setup = point.setup
    bound, plans = _planned(render(setup.workload(), {}, "result", "b:9092", "http://r:8081"))
    given = Given(
        rows_per_second={table: rows / point.epochs for table, rows in point.rows.items()},
        keys=dict.fromkeys(point.rows, float(setup.keys)),
        record_bytes=dict(point.record_bytes),
        text_bytes=dict(point.text_bytes),
        results_per_second=results,
    )
    loads = [query_load(plan, given, bound.tables) for plan in plans]
    bounds = Bounds(bound.settings.key_groups, setup.parallelism, setup.offsets)
    return Model(loads, given, bounds, known, setup.on_executors)


@cache
def _planned(text: str) -> tuple[Job | BoundQuery, Sequence[QueryPlan]]:
    return planned(text)


def cpu_s(model: Model) -> float:
    """Processor seconds of an epoch, tasks included."""
    return model.cpu_s() + model.tasks(CORES) * model.known.task_cpu_ms / 1e3


GROUPS = (
    Group(
        (
            "regular_row_us", "temporal_row_us", "interval_row_us", "record_byte_ns",
            "touched_key_us", "result_us", "executor_row_us", "task_cpu_ms",
        ),
        cpu_s,
        lambda p: p.job_cpu_s / p.epochs,
    ),
    Group(
        ("shuffle_row_bytes", "shuffle_ratio"),
        lambda m: m.traffic().shuffle,
        lambda p: p.shuffle_bytes / p.epochs,
    ),
    Group(
        ("regular_changelog_ratio", "temporal_changelog_ratio", "interval_changelog_ratio"),
        lambda m: m.traffic().checkpoint,
        lambda p: p.changelog_bytes / p.epochs,
    ),
    Group(
        ("kafka_in_ratio",), lambda m: m.traffic().kafka_in, lambda p: p.kafka_in_bytes / p.epochs
    ),
    Group(
        ("kafka_out_ratio",),
        lambda m: m.traffic().kafka_out,
        lambda p: p.kafka_out_bytes / p.epochs,
    ),
)  # fmt: skip


def fit(points: Sequence[Point], before: Calibration, measured: Measured) -> Calibration:
    """The calibration by these points; what they say nothing of stays as it was `before`.

    Errors are those on the points that are held out.
    """
    seen = [point for point in points if not point.setup.held_out]
    found: dict[str, float] = {}
    for group in GROUPS:
        found |= _fit_group(group, seen)
    found["wait_factor"] = _wait_factor(seen, before.coefficients)
    found["read_share"] = sum(p.read_cpu_share * p.job_cpu_s for p in seen) / sum(
        p.job_cpu_s for p in seen
    )
    known = replace(before.coefficients, **found)
    source = f"{FITTED} {len(seen)} runs of `python -m bench.sizing`"
    rests_on = {**before.rests_on, **dict.fromkeys(found, source)}
    broker_us = _broker_us(seen)
    held_out = [h for p in points if p.setup.held_out for h in compare(p, known, broker_us)]
    return Calibration(known, rests_on, measured, tuple(held_out))


def _fit_group(group: Group, points: Sequence[Point]) -> dict[str, float]:
    equations = [_equation(group, point) for point in points if group.measured(point) > 0]
    return _solved(group.names, equations)


def _equation(group: Group, point: Point) -> list[float]:
    measured = group.measured(point)
    results = point.results / point.epochs
    units = (replace(_NONE, **{name: 1.0}) for name in group.names)
    return [group.predicted(model_of(point, unit, results)) / measured for unit in units]


def _wait_factor(points: Sequence[Point], known: Coefficients) -> float:
    """How much longer epochs take than their fixed time and the work of job and broker.

    The fixed time is not fitted: in epochs that are always full it does not stand out from work.
    """
    equations, wanted = [], []
    for point in points:
        epoch_s = point.seconds / point.epochs
        work_s = (point.job_cpu_s + point.broker_cpu_s) / point.epochs / CORES
        equations.append([work_s / epoch_s])
        wanted.append(1 - model_of(point, known).fixed_s(CORES) / epoch_s)
    [factor] = least_squares(equations, wanted)
    return factor


def _solved(names: Sequence[str], equations: Sequence[Sequence[float]]) -> dict[str, float]:
    """The coefficients that occur in at least one equation; the others stay unknown."""
    known = [i for i in range(len(names)) if any(row[i] for row in equations)]
    values = least_squares([[row[i] for i in known] for row in equations], [1.0] * len(equations))
    return {names[i]: value for i, value in zip(known, values, strict=True)}


def least_squares(rows: Sequence[Sequence[float]], wanted: Sequence[float]) -> list[float]:
    """The x >= 0 for which the rows times x are nearest to `wanted`, by coordinate descent.

    >>> [round(x, 6) for x in least_squares([[1, 0], [1, 1], [0, 2]], [3, 2, -2])]
    [2.5, 0.0]
    """
    width = len(rows[0]) if rows else 0
    scales = [sum(row[i] ** 2 for row in rows) ** 0.5 or 1.0 for i in range(width)]
    columns = [[row[i] / scales[i] for row in rows] for i in range(width)]
    x, rest = [0.0] * width, [float(w) for w in wanted]
    for _ in range(_SWEEPS):
        moved = 0.0
        for i, column in enumerate(columns):
            step = max(-x[i], sum(a * r for a, r in zip(column, rest, strict=True)))
            x[i] += step
            rest = [r - a * step for a, r in zip(column, rest, strict=True)]
            moved = max(moved, abs(step))
        if moved < _SETTLED:
            break
    return [value / scale for value, scale in zip(x, scales, strict=True)]


def _broker_us(points: Sequence[Point]) -> float:
    """The broker's processor time per record, which shares the cores of a benchmark."""
    records = sum(point.rows_in + point.results for point in points)
    return sum(point.broker_cpu_s for point in points) / records * 1e6


def compare(point: Point, known: Coefficients, broker_us: float) -> Iterator[HeldOut]:
    """Predicted and measured figures of a point; results are predicted, too."""
    name, rows = point.setup.name.removeprefix("held out: "), point.rows_in / point.epochs
    model = model_of(point, known)
    traffic = model.traffic()
    cpu = cpu_s(model)
    broker_s = broker_us * (rows + model.results()) / 1e6
    work_s = known.wait_factor * (cpu + broker_s) / CORES
    epoch_s = model.fixed_s(CORES) + work_s
    figures = {
        ("processor time per record", "us"): (
            cpu / rows * 1e6,
            point.job_cpu_s / point.rows_in * 1e6,
        ),
        ("records per second", "1/s"): (rows / epoch_s, point.rows_in / point.seconds),
        **{
            (f"{what} per record", "bytes"): (predicted / rows, measured / point.rows_in)
            for what, predicted, measured in (
                ("exchange", traffic.shuffle, point.shuffle_bytes),
                ("changelog", traffic.checkpoint, point.changelog_bytes),
                ("read from Kafka", traffic.kafka_in, point.kafka_in_bytes),
                ("written to Kafka", traffic.kafka_out, point.kafka_out_bytes),
            )
        },
    }
    for (figure, unit), (predicted, measured) in figures.items():
        if measured > 0:
            yield HeldOut(name, figure, unit, predicted, measured)


def calibration_json(known: Calibration, points: Sequence[Point]) -> str:
    """The data file of the model."""
    values = asdict(known.coefficients)
    document: Mapping[str, object] = {
        "measured": None if known.measured is None else asdict(known.measured),
        "coefficients": {
            name: {"value": float(f"{value:.5g}"), "rests_on": known.rests_on[name]}
            for name, value in values.items()
        },
        "held_out": [
            {
                **asdict(h),
                "predicted": float(f"{h.predicted:.5g}"),
                "measured": float(f"{h.measured:.5g}"),
            }
            for h in known.held_out
        ],
        "points": [asdict(point) for point in points],
    }
    return json.dumps(document, indent=1) + "\n"
