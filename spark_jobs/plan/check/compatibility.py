"""Whether a plan reads the state that another plan has written, and what differs.

A state cell holds packed rows under packed keys. Whatever decides which rows those are, or how they
are laid out, must be the same. What happens to rows before or after that may change, and does so
from the next epoch on. Spark numbers operators and sources by position: one that is added, removed
or moved would read another's state.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias

from spark_jobs.plan.check.fingerprint import Facts, Fingerprint, OperatorPrint, ScanPrint
from spark_jobs.plan.nodes.plan_json import Json

Effect: TypeAlias = Literal["compatible", "incompatible"]

_RENAMED = "only names: state goes by position and type"
_FROM_NOW = "holds from the next epoch on; what was written before stays as it is"
_NOT_IN_STATE = "no state depends on it"

# why a fact around an operator may change
_AROUND = {
    "WHERE behind it": _FROM_NOW,
    "late topic": _NOT_IN_STATE,
    "time zone": "rows in state keep what was computed in the old zone",
    "watermark policy": "state keeps each input's watermark, they are combined anew",
    "idle timeouts": _NOT_IN_STATE,
    "gate": "a gate that has opened stays open",
    "wait for key changes": "what waits goes on waiting, now for as long as this says",
}
_TTL = "rows keep the time of their last change; the new length counts from there"
_SCAN = {
    "table": _RENAMED,
    "changelog": "rows in state stay; records are read in the new way from here on",
    "key format": "records are decoded in the new way from the next one on; state keeps rows",
    "value format": "records are decoded in the new way from the next one on; state keeps rows",
    "columns read": "state keeps the columns that it needs, and those are the same",
    "primary key": "the keys that state goes by are the same",
    "WHERE in front": "rows in state were chosen by the old filter, new ones by the new",
    "watermark": "holds for the next records; a watermark never goes back",
    "starts": "without effect: the checkpoint says where reading goes on",
    "ends": "without effect: where reading ends was decided at the first start",
    "bad records": _FROM_NOW,
    "dead letters": _FROM_NOW,
}
_SINK = {
    "topic": "the new topic gets changes from here on, the old one keeps what it has",
    "mode": _FROM_NOW,
    "key format": _FROM_NOW,
    "value format": _FROM_NOW,
    "key": "new records have the new key; records under the old one stay until somebody deletes "
    "them",
    "columns": _FROM_NOW,
    "metadata": _FROM_NOW,
    "SELECT": _FROM_NOW,
    "delivery": "the ledger of exactly-once begins at the next epoch",
    "transactional ids": "stop the job gracefully before: an epoch that was cut off could not "
    "be distinguished from a written one",
    "brought together by key": "stop the job gracefully before: an epoch that was cut off would be "
    "repeated by other writers",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that differs: where, what it was and is, what that means for the checkpoint."""

    effect: Effect
    code: str
    place: str
    then: str
    now: str
    reason: str

    def text(self) -> str:
        return f"{self.place}: then {self.then}, now {self.now} ({self.reason})"


def differences(then: Fingerprint, now: Fingerprint) -> list[Difference]:
    """What differs; nothing for an identical plan."""
    found = [*_operators(then, now), *_scans(then.scans, now.scans)]
    return [*found, *_facts("sink", then.sink, now.sink, _SINK)]


def _operators(then: Fingerprint, now: Fingerprint) -> Iterator[Difference]:
    old, new = (tuple(reversed(print_.operators)) for print_ in (then, now))
    if [o.kind for o in old] != [o.kind for o in new]:
        yield wrong(
            "STATE_INCOMPATIBLE",
            "stateful operators, from the sources to the sink",
            _names(old),
            _names(new),
            "Spark keeps state by the operator's number: another operator would read it",
        )
        return
    for before, after in zip(old, new, strict=True):
        yield from _state(after.id, before, after)
        ttl = {name: _TTL for name in {**before.around, **after.around} if name[:4] == "TTL "}
        yield from _facts(after.id, before.around, after.around, _AROUND | ttl)


def _state(place: str, then: OperatorPrint, now: OperatorPrint) -> Iterator[Difference]:
    for name in {**then.state, **now.state}:
        was, is_ = then.state.get(name), now.state.get(name)
        if was == is_ or (_says_nothing(was) and _says_nothing(is_)):
            continue
        if name.endswith((" row", "key")) or name == "row" or name.endswith(": row"):
            yield from _columns(f"{place}, {name}", was, is_)
        else:
            yield _incompatible(f"{place}, {name}", was, is_, _REASONS.get(name, _CELLS))


_CELLS = "what the cells hold depends on it"
_REASONS = {
    "clock": "a clock is one of the query's sources, which Spark tells apart by position",
    "watermarks": "watermarks are kept by the place of the topic among the query's",
    "TTL": "rows carry the time of their last change only where there is a TTL",
}


def _columns(place: str, then: Json, now: Json) -> Iterator[Difference]:
    """Columns by position: `name TYPE`, or the expression that a column is made of."""
    if not isinstance(then, list) or not isinstance(now, list):
        yield _incompatible(place, then, now, _CELLS)
        return
    for number, (was, is_) in enumerate(zip_longest(then, now), 1):
        if was == is_:
            continue
        if _same_type(was, is_):
            yield Difference("compatible", "", place, _text(was), _text(is_), _RENAMED)
        else:
            yield _incompatible(f"{place}, column {number}", was, is_, _CELLS)


def _same_type(then: Json, now: Json) -> bool:
    """Whether two `name TYPE` have one type; a packed row has a bit for NULL, allowed or not."""
    if not isinstance(then, str) or not isinstance(now, str) or "`" in then + now:
        return False
    was, is_ = (text.partition(" ")[2].removesuffix(" NOT NULL") for text in (then, now))
    return was == is_ != ""


def _scans(then: Sequence[ScanPrint], now: Sequence[ScanPrint]) -> Iterator[Difference]:
    if len(then) != len(now):
        yield wrong(
            "CHECKPOINT_MISMATCH",
            "tables that are read",
            ", ".join(scan.id for scan in then),
            ", ".join(scan.id for scan in now),
            "Spark keeps offsets by the source's number",
        )
        return
    for before, after in zip(then, now, strict=True):
        place = f"scan {after.id}"
        if before.topics != after.topics:
            reason = "offsets and watermarks are kept by topic and its place among the query's"
            yield wrong(
                "CHECKPOINT_MISMATCH", f"{place}, topics", _topics(before), _topics(after), reason
            )
        if before.bounded != after.bounded:
            was, is_ = ("bounded" if scan.bounded else "unbounded" for scan in (before, after))
            yield wrong(
                "CHECKPOINT_MISMATCH",
                f"{place}, ends",
                was,
                is_,
                "the first start decides where inputs end",
            )
        yield from _facts(place, before.around, after.around, _SCAN)


def _facts(place: str, then: Facts, now: Facts, reasons: dict[str, str]) -> Iterator[Difference]:
    for name, reason in reasons.items():
        was, is_ = then.get(name), now.get(name)
        if was != is_ and not (_says_nothing(was) and _says_nothing(is_)):
            yield Difference("compatible", "", f"{place}, {name}", _text(was), _text(is_), reason)


def _incompatible(place: str, then: Json, now: Json, reason: str) -> Difference:
    return wrong("STATE_INCOMPATIBLE", place, _text(then), _text(now), reason)


def wrong(code: str, place: str, then: str, now: str, reason: str) -> Difference:
    """A difference that the state cannot bear, with the code of the error it leads to."""
    return Difference("incompatible", code, place, then, now, reason)


def _names(operators: Sequence[OperatorPrint]) -> str:
    return ", ".join(o.id for o in operators) or "none"


def _topics(scan: ScanPrint) -> str:
    return ", ".join(f"{name} (place {place})" for name, place in scan.topics.items())


def _says_nothing(fact: Json) -> bool:
    """Whether a fact means the same as its absence."""
    return fact is None or fact is False or fact == [] or fact == {}


def _text(fact: Json) -> str:
    match fact:
        case None | []:
            return "none"
        case bool():
            return "yes" if fact else "no"
        case list():
            return "(" + ", ".join(_text(item) for item in fact) + ")"
        case dict():
            return ", ".join(f"{k} {_text(v)}" for k, v in fact.items()) or "none"
        case _:
            return str(fact)
