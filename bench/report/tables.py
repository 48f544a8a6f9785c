"""The tables of the figures, as Markdown."""

from collections.abc import Iterable, Sequence

from bench.figures import REFERENCE, Outcome, better, mib
from bench.peers.catalog import TUNED_FLINKS

_OTHERS = ("flink", "flink-heap", "kafka-streams", "spark", "pathway")
_PICTURES = tuple(
    f"""<picture>
<source media="(prefers-color-scheme: dark)" srcset="images/{name}-dark.svg">
<img alt="{what} of each workload and peer, as bars beside rejoin's; the tables have the figures."
 src="images/{name}-light.svg" width="520">
</picture>"""
    for name, what in (("bench-time", "Whole runs"), ("bench-memory", "Peak memory"))
)


def tables(outcomes: Sequence[Outcome]) -> str:
    """Everything between the marks of docs/bench.md."""
    parts = [
        _conditions(outcomes),
        *_PICTURES,
        _against_tuned_flink(outcomes),
        _against_others(outcomes),
        _left_out(outcomes),
        _everything(outcomes),
    ]
    return "\n\n".join(part for part in parts if part)


def _conditions(outcomes: Sequence[Outcome]) -> str:
    workloads: dict[str, list[str]] = {}
    for outcome in outcomes:
        c = outcome.conditions
        where = f"{c.date}, commit {c.commit}, {c.cores} cores and {c.memory_gib:.0f} GiB"
        workloads.setdefault(where, []).append(f"`{outcome.workload}`")
    of_each = (
        f"{', '.join(names)}: {where}" if len(workloads) > 1 else where
        for where, names in workloads.items()
    )
    turns = {len(outcome.of(peer)) for outcome in outcomes for peer in outcome.peers}
    if turns == {1}:
        runs = "One run of each"
    else:
        runs = f"Medians of {'up to ' if len(turns) > 1 else ''}{max(turns)} runs of each"
    return (
        f"{'; '.join(of_each)}, shared with the broker. {runs}. Times are whole runs, start-up "
        "included."
    )


def _against_tuned_flink(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for outcome in outcomes:
        flink = better(outcome, TUNED_FLINKS)
        if flink is None or not outcome.of(REFERENCE):
            continue
        both = (REFERENCE, flink)
        seconds = [f"{outcome.median(peer, 'seconds'):.1f} s" for peer in both]
        how = flink.removeprefix("flink-tuned").removeprefix("-")
        ratio, work = outcome.ratio(flink), outcome.ratio(flink, "processor_s")
        rows.append(
            (
                f"`{outcome.workload}`",
                _millions(outcome.rows),
                seconds[0],
                seconds[1] + (f" ({how})" if how else ""),
                f"**{_times(ratio)}**",
                " : ".join(_thousands(outcome.median(p, "warm_rows_per_second")) for p in both),
                _times(work),
                " : ".join(mib(outcome.median(p, "peak_rss_bytes")) for p in both),
            )
        )
    head = (
        "workload", "records", "rejoin", "Flink, tuned", "time", "warm rows/s", "processor time",
        "peak memory",
    )  # fmt: skip
    return _table(head, rows)


def _against_others(outcomes: Sequence[Outcome]) -> str:
    rows = [
        (
            f"`{outcome.workload}`",
            f"`{peer}`",
            f"{outcome.median(peer, 'seconds'):.1f} s",
            f"**{_times(outcome.ratio(peer))}**",
            _thousands(outcome.median(peer, "warm_rows_per_second")),
            mib(outcome.median(peer, "peak_rss_bytes")),
        )
        for outcome in outcomes
        for peer in _OTHERS
        if outcome.of(peer)
    ]
    return _table(("workload", "peer", "whole run", "time", "warm rows/s", "peak memory"), rows)


def _left_out(outcomes: Sequence[Outcome]) -> str:
    reasons: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        for peer, why in outcome.left_out.items():
            reasons.setdefault((peer, why), []).append(outcome.workload)
    rows = [
        (f"`{peer}`", ", ".join(f"`{name}`" for name in names), why.replace("|", "/"))
        for (peer, why), names in reasons.items()
    ]
    return _table(("peer", "without figures for", "why"), rows)


def _everything(outcomes: Sequence[Outcome]) -> str:
    rows = [
        (
            f"`{outcome.workload}`",
            f"`{peer}`",
            str(len(outcome.of(peer))),
            f"{outcome.median(peer, 'seconds'):.1f} s",
            f"{outcome.median(peer, 'processor_s'):.0f} s",
            _thousands(outcome.median(peer, "rows_per_second")),
            _thousands(outcome.median(peer, "warm_rows_per_second")),
            mib(outcome.median(peer, "peak_rss_bytes")),
            mib(outcome.median(peer, "peak_state_bytes")),
            f"{outcome.median(peer, 'output_records'):,.0f}",
        )
        for outcome in outcomes
        for peer in outcome.peers
    ]
    head = (
        "workload", "peer", "runs", "whole run", "processors", "rows/s", "warm rows/s",
        "peak memory", "peak checkpoints", "records written",
    )  # fmt: skip
    body = _table(head, rows)
    return f"<details><summary>Every figure</summary>\n\n{body}\n\n</details>" if body else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = ["| " + " | ".join(row) + " |" for row in rows]
    if not body:
        return ""
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *body])


def _times(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{ratio:.2f} times"


def _millions(rows: int) -> str:
    return f"{rows / 1e6:g} M"


def _thousands(rows: float) -> str:
    return f"{rows / 1e3:,.0f} k" if rows else "at once"
