"""`python -m bench.report [FILE...]`: renews the figures in docs/bench.md and their pictures.

They are those of docs/figures, one file for each workload. A file that is given, one of
build/bench/results, replaces its workload's file there first. With `--print` the tables of the
given files go to the screen, and no file changes.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.figures import Outcome, read_outcome, write_outcome
from bench.report.plots import PICTURES
from bench.report.tables import tables
from bench.workloads.catalog import WORKLOADS
from tools.pictures.drawing import THEMES

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = _ROOT / "docs" / "bench.md"
_FIGURES = _ROOT / "docs" / "figures"
_IMAGES = _ROOT / "docs" / "images"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def kept(folder: Path = _FIGURES) -> list[Outcome]:
    """The outcomes in a folder of WORKLOAD.json, in the order of the catalog."""
    files = (folder / f"{name}.json" for name in WORKLOADS)
    return [read_outcome(file) for file in files if file.exists()]


def keep(outcomes: Iterable[Outcome], folder: Path = _FIGURES) -> None:
    """Write each outcome to its workload's file; figures of it that are there are replaced."""
    for outcome in outcomes:
        write_outcome(folder / f"{outcome.workload}.json", outcome)


def read(files: Iterable[Path]) -> list[Outcome]:
    """Results of `rejoin bench`. ValueError: a file has none, or two files have one workload."""
    found: dict[str, Outcome] = {}
    for file in files:
        try:
            outcome = read_outcome(file)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as failure:
            raise ValueError(
                f"{file} is no result of `rejoin bench`, which writes build/bench/results/*.json"
            ) from failure
        if not outcome.runs:
            raise ValueError(f"{file} has no figures: every peer was left out or stopped")
        if outcome.workload in found:
            raise ValueError(f"{file} is the second file of {outcome.workload}: give one of them")
        found[outcome.workload] = outcome
    return list(found.values())


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
    try:
        outcomes = read(given.files)
    except ValueError as failure:
        parser.error(str(failure))
    if given.print:
        sys.stdout.write(tables(outcomes or kept()) + "\n")
        return
    keep(outcomes)
    _draw(kept())


def _draw(outcomes: list[Outcome]) -> None:
    _PAGE.write_text(
        replaced(_PAGE.read_text(encoding="utf-8"), tables(outcomes)), encoding="utf-8"
    )
    for file, picture in pictures(outcomes):
        (_IMAGES / file).write_text(picture, encoding="utf-8")


def pictures(outcomes: list[Outcome]) -> Iterator[tuple[str, str]]:
    """Name and SVG text of each file in docs/images."""
    for name, draw in PICTURES.items():
        drawing = draw(outcomes)
        for theme, colours in THEMES.items():
            yield f"{name}-{theme}.svg", drawing.svg(colours)


if __name__ == "__main__":
    main()
