"""The options of `rejoin explain --size`, and the way from a job file to its sizes."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeAlias

import typer

from spark_jobs.errors import ConfigError
from spark_jobs.options.settings import DeclaredSettings
from spark_jobs.plan.nodes.physical import QueryPlan
from spark_jobs.plan.text.explain import planned
from spark_jobs.settings import MAX_OFFSETS
from spark_jobs.sizing.coefficients import calibration
from spark_jobs.sizing.given import TEXT_BYTES, Executor, Given, by_table, complete, rates_of
from spark_jobs.sizing.load import query_load, tables_read, tables_with_keys
from spark_jobs.sizing.model import Bounds, Model
from spark_jobs.sizing.report import Report

SIZES = (1, 10, 100)


def _per_table(text: str) -> Any:
    return typer.Option(metavar="[TABLE=]N", help=f"{text} Repeatable.")


Numbers: TypeAlias = list[str] | None
Rows: TypeAlias = Annotated[
    Numbers,
    _per_table("Records per second of a table, or of all together; 80000 or 80k."),
]
Keys: TypeAlias = Annotated[
    Numbers,
    _per_table("Different keys of a table: of its PRIMARY KEY, else of the join key."),
]
RecordBytes: TypeAlias = Annotated[
    Numbers,
    _per_table("Mean bytes of a record before compression; from the columns if omitted."),
]
Partitions: TypeAlias = Annotated[
    Numbers, _per_table("Partitions of a table's topic; ample if omitted.")
]
TextBytes: TypeAlias = Annotated[
    Numbers, _per_table("Mean bytes of a text of a table; 16 if omitted.")
]
Results: TypeAlias = Annotated[
    float | None,
    typer.Option(help="Records per second that are written; estimated if omitted.", min=0),
]
EpochSeconds: TypeAlias = Annotated[
    float, typer.Option(help="Longest epoch that you accept: results are as old.", min=0.1)
]
Executors: TypeAlias = Annotated[
    list[int] | None,
    typer.Option(
        metavar="N", help="Number of executors; 1, 10 and 100 if omitted. Repeatable.", min=1
    ),
]
Cores: TypeAlias = Annotated[int, typer.Option(help="Cores of an executor.", min=1)]
HeapMb: TypeAlias = Annotated[int, typer.Option(help="Heap of an executor in MB.", min=512)]
Network: TypeAlias = Annotated[
    float, typer.Option(help="Network of an executor, Mbit/s in each direction.", min=1)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOptions:
    """The options as they were typed; None and an empty list are an option left out."""

    rows_per_second: Sequence[str] = ()
    keys: Sequence[str] = ()
    record_bytes: Sequence[str] = ()
    partitions: Sequence[str] = ()
    results_per_second: float | None = None
    text_bytes: Sequence[str] = ()
    epoch_seconds: float = 1.0
    executors: Sequence[int] = ()
    executor_cores: int = 4
    executor_memory_mb: int = 4096
    network_mbit: float = 10_000.0


def refuse_without_size(options: SizeOptions) -> None:
    """Refuse options that have no meaning without `--size`."""
    for option in fields(SizeOptions):
        if getattr(options, option.name) != option.default:
            name = "--" + option.name.replace("_", "-")
            raise ConfigError(
                "SIZE_OPTION", f"{name} has a meaning only with --size", hint="add --size"
            )


def size_job(text: str, source_name: str, options: SizeOptions) -> Report:
    """The sizes of a job file, or of the bare SELECT at its end.

    Raises:
        SqlErrors: the problems of the file.
        ConfigError: what the options leave out or get wrong.
    """
    bound, plans = planned(text, source_name)
    given = _given(options, plans)
    loads = [query_load(plan, given, bound.tables) for plan in plans]
    known = calibration()
    model = Model(loads, given, _bounds(bound.settings), known.coefficients)
    wanted = sorted(set(options.executors or SIZES))
    return Report(model, tuple(model.size(count) for count in wanted), known)


def _given(options: SizeOptions, plans: Sequence[QueryPlan]) -> Given:
    tables = tables_read(plans)
    if not options.rows_per_second:
        complete("--rows-per-second", {}, tables, "how many records arrive per second")
    rates = rates_of(options.rows_per_second, tables)
    keys = by_table("--keys", options.keys, tables)
    complete("--keys", keys, tables_with_keys(plans), "how many keys there are")
    return Given(
        rows_per_second=rates,
        keys=keys,
        record_bytes=by_table("--record-bytes", options.record_bytes, tables),
        partitions=by_table("--partitions", options.partitions, tables),
        text_bytes=dict.fromkeys(tables, TEXT_BYTES)
        | by_table("--text-bytes", options.text_bytes, tables),
        results_per_second=options.results_per_second,
        epoch_s=options.epoch_seconds,
        executor=Executor(
            cores=options.executor_cores,
            memory_mb=options.executor_memory_mb,
            network_mbit=options.network_mbit,
        ),
    )


def _bounds(settings: DeclaredSettings) -> Bounds:
    most = settings.max_offsets_per_trigger or MAX_OFFSETS
    return Bounds(settings.key_groups, settings.parallelism, most)
