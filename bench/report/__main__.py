"""`python -m bench.report [FILE...]`: renews the figures in docs/bench.md and their pictures.

Without files it takes all of build/bench/results; of two files of one workload the one with more
records counts. `--print` writes the tables to the screen and changes nothing.
"""

import argparse
import sys
from pathlib import Path

from bench.figures import Outcome, read_outcome
from bench.report.plots import PICTURES
from bench.report.tables import tables
from bench.run import RESULTS
from bench.workloads.catalog import WORKLOADS
from tools.pictures.drawing import THEMES

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = _ROOT / "docs" / "bench.md"
_IMAGES = _ROOT / "docs" / "images"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def outcomes_of(files: list[Path]) -> list[Outcome]:
    """One outcome for each workload that has figures, in the order of the catalog."""
    found: dict[str, Outcome] = {}
    for outcome in map(read_outcome, files):
        known = found.get(outcome.workload)
        if outcome.runs and (known is None or known.rows < outcome.rows):
            found[outcome.workload] = outcome
    return [found[name] for name in WORKLOADS if name in found]


def replaced(page: str, figures: str) -> str:
    """The page with these figures between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{figures}\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    parser.add_argument("--print", action="store_true", help="change no file")
    given = parser.parse_args()
    outcomes = outcomes_of(given.files or sorted(RESULTS.glob("*.json")))
    if not outcomes:
        parser.error(f"no figures in {RESULTS}: run `rejoin bench` first")
    figures = tables(outcomes)
    if given.print:
        sys.stdout.write(figures + "\n")
        return
    _PAGE.write_text(replaced(_PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")
    for name, draw in PICTURES.items():
        drawing = draw(outcomes)
        for theme, colours in THEMES.items():
            path = _IMAGES / f"{name}-{theme}.svg"
            path.write_text(drawing.svg(colours), encoding="utf-8")


if __name__ == "__main__":
    main()
