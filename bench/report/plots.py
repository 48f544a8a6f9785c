"""The pictures of the figures: bars beside those of rejoin."""

from collections.abc import Callable, Sequence

from bench.figures import REFERENCE, Outcome, better
from bench.peers.catalog import TUNED_FLINKS
from tools.pictures.drawing import WIDTH, Drawing

_MARGIN = 16
_PITCH, _GAP, _HEAD = 30, 38, 46
_NAMES, _VALUES = 176, 112  # widths of the columns on both sides of the bars
_LONGEST = WIDTH - 2 * _MARGIN - _NAMES - _VALUES
_OTHERS = ("kafka-streams", "spark", "pathway")


def times(outcomes: Sequence[Outcome]) -> Drawing:
    """Whole runs, as multiples of rejoin's."""
    title = "Whole run, rejoin = 1 (shorter is better)"
    return _bars(outcomes, title, "seconds", lambda s: f"{s:.0f} s")


def memory(outcomes: Sequence[Outcome]) -> Drawing:
    """Peak memory, as multiples of rejoin's."""
    title = "Peak memory, rejoin = 1 (shorter is better)"
    return _bars(outcomes, title, "peak_rss_bytes", lambda b: f"{b / 2**30:.1f} GiB")


PICTURES: dict[str, Callable[[Sequence[Outcome]], Drawing]] = {
    "bench-time": times,
    "bench-memory": memory,
}


def shown(outcome: Outcome) -> list[str]:
    """rejoin, the better of the tuned Flinks, and the other engines."""
    flink = better(outcome, TUNED_FLINKS)
    wanted = (REFERENCE, *((flink,) if flink else ()), *_OTHERS)
    return [peer for peer in wanted if outcome.of(peer)]


def _bars(
    outcomes: Sequence[Outcome], title: str, figure: str, written: Callable[[float], str]
) -> Drawing:
    groups = [outcome for outcome in outcomes if len(shown(outcome)) > 1]
    count = sum(len(shown(outcome)) for outcome in groups)
    drawing = Drawing(_HEAD + count * _PITCH + len(groups) * _GAP + 8, title)
    drawing.words(_MARGIN, 28, title, kind="bold")
    largest = max(
        (outcome.ratio(peer, figure) or 0 for outcome in groups for peer in shown(outcome)),
        default=1.0,
    )
    y = float(_HEAD)
    for outcome in groups:
        drawing.words(_MARGIN, y + 14, outcome.workload, ink="soft")
        y += _GAP
        for peer in shown(outcome):
            ratio = outcome.ratio(peer, figure) or 0.0
            value = written(outcome.median(peer, figure))
            value += "" if peer == REFERENCE else f" ({ratio:.2f})"
            ink = "sink" if peer == REFERENCE else "operator"
            length = max(ratio / largest * _LONGEST, 4)
            drawing.words(_MARGIN, y + 10, peer)
            drawing.bar(_MARGIN + _NAMES, y + 5, length, ink, "")
            drawing.words(_MARGIN + _NAMES + length + 8, y + 10, value)
            y += _PITCH
    return drawing
