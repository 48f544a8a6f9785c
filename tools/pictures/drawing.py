"""Boxes, arrows and words as SVG: the few shapes of which every picture is made.

A picture is 520 units wide and its words are 15 units high, so that they can be read on a page of
390 pixels. Colours are classes; each theme gives them values, those of the live page.
"""

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH = 520
LIGHT = {
    "ground": "#f6f7f9", "card": "#ffffff", "ink": "#1b2330", "soft": "#586274",
    "line": "#cfd5df", "source": "#2257b8", "operator": "#6a3fb5", "sink": "#0b7269",
    "warn": "#96590a", "bad": "#b3261e",
}  # fmt: skip
DARK = {
    "ground": "#12161d", "card": "#1b212b", "ink": "#e6eaf1", "soft": "#a3aebf",
    "line": "#3a4453", "source": "#8ab4ff", "operator": "#c3a5ff", "sink": "#64d8cb",
    "warn": "#f0b65c", "bad": "#ff8a80",
}  # fmt: skip
THEMES = {"light": LIGHT, "dark": DARK}
_LINE = 19  # from one line of words to the next
_INKS = ("ink", "soft", "source", "operator", "sink", "warn", "bad")


class Drawing:
    """One picture. The page that shows it says in words what is on it."""

    def __init__(self, height: int, title: str) -> None:
        self._height = height
        self._title = title
        self._shapes: list[str] = []

    def words(
        self, x: float, y: float, *lines: str, ink: str = "ink", at: str = "start", kind: str = ""
    ) -> None:
        """Lines of text; `y` is the base line of the first, `at` is start, middle or end.

        `kind` is bold, or halo for words that lie across a line.
        """
        for number, line in enumerate(lines):
            self._add(
                f'<text class="{ink} {kind}" x="{x:g}" y="{y + number * _LINE:g}" '
                f'text-anchor="{at}">{escape(line)}</text>'
            )

    def box(
        self, x: float, y: float, width: float, height: float, *lines: str, accent: str = ""
    ) -> None:
        """A card with an edge in the colour of what it is; the first line is its name."""
        self._rect("card", x, y, width, height)
        if accent:
            self._rect(f"fill-{accent}", x, y, 5, height, radius=2)
        top = y + (height - len(lines) * _LINE) / 2 + 14
        self.words(x + 14, top, lines[0], kind="bold")
        self.words(x + 14, top + _LINE, *lines[1:], ink="soft")

    def frame(self, x: float, y: float, width: float, height: float, name: str) -> None:
        """A dashed line around what belongs together."""
        self._rect("frame", x, y, width, height)
        self.words(x + 10, y + 20, name, ink="soft")

    def bar(
        self, x: float, y: float, width: float, ink: str, text: str = "", indent: float = 14
    ) -> None:
        """A stretch of time around the line `y`."""
        for kind in ("ground", f"bar fill-{ink} stroke-{ink}"):
            self._rect(kind, x, y - 13, width, 26, radius=3)
        self.words(x + indent, y + 5, text)

    def dot(self, x: float, y: float, ink: str) -> None:
        """A row that arrives."""
        self._add(f'<circle class="fill-{ink}" cx="{x:g}" cy="{y:g}" r="6"/>')

    def line(self, *points: tuple[float, float], ink: str = "line", dashed: bool = False) -> None:
        self._add(self._path(points, f"stroke-{ink}{' dashed' if dashed else ''}"))

    def arrow(self, *points: tuple[float, float], ink: str = "soft", dashed: bool = False) -> None:
        """A line with a head at its last point; its last part is horizontal or vertical."""
        (x0, y0), (x, y) = points[-2:]
        dx, dy = _sign(x - x0), _sign(y - y0)
        self.line(*points[:-1], (x - 5 * dx, y - 5 * dy), ink=ink, dashed=dashed)
        foot = (x - 10 * dx, y - 10 * dy)
        sides = [(foot[0] + 5 * turn * dy, foot[1] + 5 * turn * dx) for turn in (1, -1)]
        corners = " ".join(f"{a:g},{b:g}" for a, b in ((x, y), *sides))
        self._add(f'<polygon class="fill-{ink}" points="{corners}"/>')

    def cross(self, x: float, y: float) -> None:
        """Where something is killed."""
        for rise in (7, -7):
            ends = ((x - 7, y - rise), (x + 7, y + rise))
            self._add(self._path(ends, "stroke-bad thick"))

    def svg(self, theme: Mapping[str, str]) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self._height}" '
            f'viewBox="0 0 {WIDTH} {self._height}" role="img">'
        )
        ground = f'<rect class="ground" width="{WIDTH}" height="{self._height}" rx="10"/>'
        title = f"<title>{escape(self._title)}</title>"
        return "\n".join([head, title, _style(theme), ground, *self._shapes, "</svg>", ""])

    def _add(self, shape: str) -> None:
        self._shapes.append(shape)

    def _rect(
        self, kind: str, x: float, y: float, width: float, height: float, radius: float = 6
    ) -> None:
        self._add(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            f'rx="{radius:g}"/>'
        )

    def _path(self, points: Sequence[tuple[float, float]], kind: str) -> str:
        path = " L".join(f"{x:g} {y:g}" for x, y in points)
        return f'<path class="path {kind}" d="M{path}"/>'


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def _style(theme: Mapping[str, str]) -> str:
    rules = [
        "text { font: 15px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }",
        ".bold { font-weight: 600; }",
        f".halo {{ paint-order: stroke; stroke: {theme['ground']}; stroke-width: 5px; }}",
        f".ground {{ fill: {theme['ground']}; }}",
        f".card {{ fill: {theme['card']}; stroke: {theme['line']}; }}",
        f".frame {{ fill: {theme['ground']}; stroke: {theme['soft']}; stroke-dasharray: 5 4; }}",
        ".path { fill: none; stroke-width: 2; stroke-linejoin: round; }",
        ".dashed { stroke-dasharray: 4 4; }",
        ".thick { stroke-width: 3.5; stroke-linecap: round; }",
        ".bar { fill-opacity: .16; stroke-width: 1.5; }",
        f".stroke-line {{ stroke: {theme['line']}; }}",
    ]
    for ink in _INKS:
        value = theme[ink]
        rules.append(
            f".{ink}, .fill-{ink} {{ fill: {value}; }} .stroke-{ink} {{ stroke: {value}; }}"
        )
    return "<style>\n" + "\n".join(rules) + "\n</style>"
