"""Why no result has come for a while, in plain words, from the status and its history."""

from collections.abc import Iterator

from service.driver import DriverView
from service.health import driver_reasons, gate_reasons
from service.history import END_MS, History
from service.models import QueryWatermarks, Reason, Silence
from spark_jobs.status import QueryStatus

QUIET_S = 30.0
_MOST_HOLDERS = 3


def silence(
    view: DriverView, query: QueryStatus, marks: QueryWatermarks, history: History
) -> Silence | None:
    """The likely causes, the most certain one first; None if results come."""
    quiet_s = history.still_s("rows out", query.name)
    if quiet_s is None or quiet_s < max(QUIET_S, 3 * query.trigger_ms / 1000):
        return None
    # each group explains the silence alone: what comes after it would only be its consequence
    groups = (
        driver_reasons(view),
        tuple(_failing(query, history)),
        tuple(_long_epoch(query, history)),
        tuple(gate_reasons(query)),
        tuple(_nothing_read(query, history)),
    )
    reasons = next(filter(None, groups), None) or tuple(_nothing_made(query, marks, history))
    return Silence(seconds=quiet_s, reasons=reasons)


def _failing(query: QueryStatus, history: History) -> Iterator[Reason]:
    if restarts := history.growth("restarts", query.name):
        failure = query.last_failure
        last = "" if failure is None else f", last after {failure.code}: {failure.message}"
        yield Reason(
            code="restarting",
            message=f"the query was restarted {_times(restarts)} in a minute{last}",
        )
    elif aborts := history.growth("aborts", query.name):
        message = f"{aborts} transactions of sink topic {query.sink} were aborted in a minute"
        yield Reason(code="sink_stalled", message=message)


def _long_epoch(query: QueryStatus, history: History) -> Iterator[Reason]:
    running_s = query.epoch_running_ms / 1000
    if running_s >= QUIET_S:
        number = 0 if query.epoch is None else query.epoch + 1
        read = history.growth("rows in", query.name, seconds=running_s)
        done = f"it has read {read:,} rows" if read else "it has read its input"
        message = (
            f"epoch {number} has been running for {span(running_s)}: {done}, and its results are"
            " not committed; an operator is slow, or the topic of the sink does not take records"
        )
        yield Reason(code="epoch_unfinished", message=message)
    elif query.epoch is None:
        yield Reason(
            code="first_epoch_pending", message="no epoch has been committed since the start"
        )


def _nothing_read(query: QueryStatus, history: History) -> Iterator[Reason]:
    still = _still_tables(query, history)
    if not still or any(seconds < QUIET_S for seconds in still.values()):
        return
    if lag := query.lag_records:
        message = f"{lag:,} records wait, but none was read for {span(min(still.values()))}"
        yield Reason(code="not_reading", message=message)
    else:
        names = ", ".join(still)
        message = f"no input has had a record for {span(min(still.values()))}: {names}"
        yield Reason(code="no_records", message=message)


def _nothing_made(query: QueryStatus, marks: QueryWatermarks, history: History) -> Iterator[Reason]:
    """Records were read, and led to no result."""
    read = history.growth("rows in", query.name)
    rejected = history.growth("rejects", query.name)
    late = history.growth("late", query.name)
    if rejected >= read > 0:
        kinds = ", ".join(f"{reason} {count:,}" for reason, count in query.rejects.items())
        message = f"all {read:,} records of the last minute were rejected; so far {kinds}"
        yield Reason(code="rejected", message=message)
        return
    yield from _held(query, marks, history)
    if late:
        message = f"{late:,} rows of the last minute were behind the watermark and left no result"
        yield Reason(code="late_rows", message=message)
    for table, seconds in _still_tables(query, history).items():
        if seconds >= QUIET_S:
            message = f"table {table} has had no record for {span(seconds)}"
            yield Reason(code="input_idle", message=message)
    if read > late:
        message = (
            f"{read - late:,} rows were read in the last minute and changed no result: they found"
            " no match, were filtered, or wait for one"
        )
        yield Reason(code="no_match", message=message)


def _held(query: QueryStatus, marks: QueryWatermarks, history: History) -> Iterator[Reason]:
    """The watermark stands, or is so far behind that what was read has to wait."""
    if not any(p.counts for p in marks.partitions):
        return
    still_s = history.still_s("watermark", query.name)
    if query.watermark_ms is not None and query.watermark_ms >= END_MS:
        return
    if still_s is None or still_s >= QUIET_S:
        stands = (
            "there is no watermark yet"
            if still_s is None
            else f"the watermark has stood for {span(still_s)}"
        )
        for held in marks.held_back_by[:_MOST_HOLDERS]:
            message = f"{stands}: {held.reason}. {held.advice[:1].upper()}{held.advice[1:]}"
            yield Reason(code="watermark_held", message=message)
    else:
        delay_s = history.last("watermark delay", query.name) / 1000
        if delay_s >= QUIET_S:
            message = f"the watermark is {span(delay_s)} behind the clock: newer rows wait for it"
            yield Reason(code="watermark_behind", message=message)


def _still_tables(query: QueryStatus, history: History) -> dict[str, float]:
    """For how long no record of each table has been read."""
    tables = dict.fromkeys(source.table for source in query.sources)
    found = {table: history.still_s("offsets", query.name, table) for table in tables}
    return {table: seconds for table, seconds in found.items() if seconds is not None}


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def span(seconds: float) -> str:
    """A duration in one unit, as the page writes it.

    >>> span(61), span(200), span(9000)
    ('61 s', '3 min', '2 h')
    """
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"
