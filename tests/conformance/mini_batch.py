"""What Flink's mini-batch makes of the rows of a bundle before it joins them."""

from typing import Any

_ADDS = ("+I", "+U")


def folded(bundle: list[Any], identities: list[list[int]]) -> list[Any]:
    """The rows that are left of `[input, kind, values]`; marks keep their place.

    `identities`: per input the ordinals of its unique key, or of all columns where it has none.
    Of the rows that share it, an addition and a retraction after it cancel out, a row of the same
    sign replaces the one before, and an addition after a retraction leaves both. Without a unique
    key, equal rows count: opposite ones cancel out in either order.
    """
    kept: list[Any] = []
    for event in bundle:
        if isinstance(event[0], str):
            kept.append(event)
            continue
        number, kind, values = event
        width = len(identities[number])
        counts = width == len(values)
        key = [values[i] for i in identities[number]]
        same = [e for e in kept if e[0] == number and [e[2][i] for i in identities[number]] == key]
        opposite = [e for e in same if (e[1] in _ADDS) != (kind in _ADDS)]
        if counts and opposite:
            _drop(kept, opposite[-1])
        elif not counts and same and kind not in _ADDS and same[-1][1] in _ADDS:
            _drop(kept, same[-1])
        else:
            if not counts and same and (same[-1][1] in _ADDS) == (kind in _ADDS):
                _drop(kept, same[-1])
            kept.append(event)
    return kept


def _drop(events: list[Any], event: Any) -> None:
    """By identity: equal rows are different events."""
    events[:] = [e for e in events if e is not event]
