"""Pictures of the joins along time: what is kept, what waits, what leaves when.

Orders, rates and payments are those of docs/which-join.md, where the same rows are run.
"""

from collections.abc import Callable

from tools.pictures.drawing import Drawing

_NAMES = 16  # where the names of the lanes begin
_BEGIN = 104  # and where time begins
_END = 504
_MINUS = "\N{MINUS SIGN}"


def regular() -> Drawing:
    d = Drawing(262, "Regular join")
    orders, rates, result = 46, 104, 162
    _lanes(d, result, orders=orders, rates=rates)
    first, second, third = 150, 270, 420
    d.bar(first, orders, _END - first, "operator")
    d.bar(second, rates, third - second, "operator", "114")
    d.bar(third, rates, _END - third, "operator", "116")
    d.words(first + 14, orders + 5, "order 1")
    d.words(_END, orders - 20, "kept in state", ink="operator", at="end")
    for x, y in ((first, orders), (second, rates), (third, rates)):
        _leads_to(d, x, y, result)
    d.words(first, result + 24, "+ 1, NULL", ink="sink", at="middle")
    for x, before, after in ((second, "NULL", "114"), (third, "114", "116")):
        d.words(x, result + 24, f"{_MINUS} 1, {before}", ink="bad", at="middle")
        d.words(x, result + 43, f"+ 1, {after}", ink="sink", at="middle")
    _axis(d, 228, "time of arrival")
    return d


def interval() -> Drawing:
    d = Drawing(300, "Interval join")
    x = _scale(600, 118, 4.1)
    orders, second, payments, result = 58, 92, 146, 198
    _lanes(d, result, orders=orders, payments=payments)
    d.bar(x(600), orders, x(660) - x(600), "operator", "order 1")
    d.bar(x(615), second, x(675) - x(615), "operator", "order 2")
    d.words(x(600), orders - 22, "window of 1 hour", ink="operator")
    d.dot(x(600), orders, "source")
    d.dot(x(615), second, "source")
    d.line((x(640), orders + 13), (x(640), payments), ink="sink", dashed=True)
    _leads_to(d, x(640), payments, result)
    d.words(x(640) + 12, payments - 8, "71")
    d.words(x(640), result + 24, "+ 1, 71", ink="sink", at="middle")
    _watermark(d, x(677), 32, result)
    d.dot(x(677), result, "sink")
    d.words(x(677), result + 24, "+ 2, NULL", ink="sink", at="middle")
    ticks = ((600, "10:00"), (640, "10:40"), (675, "11:15"))
    _axis(d, 262, "event time", *((x(minute), name) for minute, name in ticks))
    return d


def temporal() -> Drawing:
    d = Drawing(276, "Event-time temporal join")
    x = _scale(540, 118, 2.4)
    rates, orders, result = 62, 122, 174
    _lanes(d, result, rates=rates, orders=orders)
    d.bar(x(540), rates, x(645) - x(540), "operator", "version 114")
    d.bar(x(645), rates, _END - x(645), "operator", "version 116")
    d.dot(x(540), rates, "source")
    d.dot(x(645), rates, "source")
    d.line((x(615), rates + 13), (x(615), orders), ink="operator", dashed=True)
    _leads_to(d, x(615), orders, result)
    d.words(x(615) - 12, orders - 8, "order 1", at="end")
    d.words(x(615), result + 24, "+ 1, 114", ink="sink", at="middle")
    d.dot(x(670), orders, "source")
    d.words(x(670), orders - 12, "order 2", at="middle")
    d.words(x(670), orders + 24, "waits", ink="warn", at="middle")
    _watermark(d, x(645), 32, result + 8)
    ticks = ((540, "9:00"), (615, "10:15"), (645, "10:45"), (670, "11:10"))
    _axis(d, 238, "event time", *((x(minute), name) for minute, name in ticks))
    return d


def latest() -> Drawing:
    d = Drawing(260, "Processing-time temporal join")
    rates, orders, result = 62, 122, 174
    _lanes(d, result, rates=rates, orders=orders)
    gate, newer = 250, 392
    d.bar(118, rates, gate - 118, "warn", "114")
    d.words(192, rates + 5, "116")
    d.words(118, rates - 22, "loading", ink="warn")
    d.bar(gate, rates, newer - gate, "operator", "newest: 116", indent=8)
    d.bar(newer, rates, _END - newer, "operator", "119")
    for x in (118, 178, newer):
        d.dot(x, rates, "source")
    d.line((gate, 32), (gate, orders), ink="warn")
    d.words(gate, 26, "gate opens", ink="warn", at="middle")
    d.dot(140, orders, "source")
    d.line((146, orders), (gate, orders), ink="warn", dashed=True)
    d.words(140, orders - 12, "order 1 waits", ink="warn")
    d.arrow((gate, orders), (gate, result), ink="sink")
    d.words(gate, result + 24, "+ 1, 116", ink="sink", at="middle")
    for x, order, rate in ((338, 2, 116), (450, 3, 119)):
        _leads_to(d, x, orders, result)
        d.words(x, orders - 12, f"order {order}", at="middle")
        d.words(x, result + 24, f"+ {order}, {rate}", ink="sink", at="middle")
    _axis(d, 226, "time of arrival")
    return d


def _lanes(d: Drawing, result: float, **tables: float) -> None:
    for name, y in (*tables.items(), ("result", result)):
        d.line((_BEGIN, y), (_END, y))
        ink = "sink" if name == "result" else "source"
        d.words(_NAMES, y + 5, name, ink=ink, kind="bold")


def _axis(d: Drawing, y: float, name: str, *ticks: tuple[float, str]) -> None:
    d.arrow((_BEGIN, y), (_END, y))
    for x, text in ticks:
        d.line((x, y - 5), (x, y + 5), ink="soft")
        d.words(x, y - 12, text, ink="soft", at="middle")
    d.words(_END, y + 22, name, ink="soft", at="end")


def _leads_to(d: Drawing, x: float, y: float, result: float) -> None:
    """A row that arrives, and the rows that leave because of it."""
    d.dot(x, y, "source")
    d.arrow((x, y + 6), (x, result), ink="sink")


def _watermark(d: Drawing, x: float, top: float, bottom: float) -> None:
    d.line((x, top), (x, bottom), ink="warn")
    d.words(x, top - 8, "watermark", ink="warn", at="middle")


def _scale(begin_min: float, begin_x: float, per_min: float) -> Callable[[float], float]:
    return lambda minute: begin_x + (minute - begin_min) * per_min
