"""`python -m tests.faults`: every kind of fault against a bounded exactly-once run.

Takes a while: `make faults` is the whole matrix. The exit code is the number of kinds that failed.
"""

import argparse
import fnmatch
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.faults.cluster_kinds import CLUSTER_KINDS
from tests.faults.data import Data
from tests.faults.kinds import KINDS, Kind
from tests.faults.matrix import Matrix, Outcome, good_outcomes, keep_outcome, table
from tests.faults.stage import stage

_MARK = "<!-- faults -->"
WORK = Path(__file__).resolve().parents[2] / "build" / "faults"


def main() -> int:
    options = _options()
    by_name = {kind.name: kind for kind in (*KINDS, *CLUSTER_KINDS)}
    wanted = {text: fnmatch.filter(by_name, text) for text in options.kinds.split(",")}
    if unknown := [text for text, found in wanted.items() if not found]:
        sys.stderr.write(f"no such kinds: {', '.join(unknown)}\n")
        return 2
    names = list(dict.fromkeys(name for found in wanted.values() for name in found))
    data = Data(options.rows, options.seed)
    done = good_outcomes(WORK, data, options.rounds) if options.resume else []
    chosen = [by_name[name] for name in names if name not in {outcome.kind for outcome in done}]
    found = _strike_all(chosen, data, options)
    text = table([*done, *found])
    sys.stdout.write(f"\n{text}\n")
    if options.markdown is not None:
        told = f"{options.rows:,} rows, seed {options.seed}:\n\n{text}\n"
        _write_markdown(options.markdown, told)
    return sum(not outcome.is_good for outcome in found)


def _strike_all(chosen: Sequence[Kind], data: Data, options: argparse.Namespace) -> list[Outcome]:
    """One kind after the other; logs are kept where one has failed."""
    folder = WORK / time.strftime("%Y%m%d-%H%M%S")
    started = time.monotonic()

    def say(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - started:7.0f} s  {line}\n")
        sys.stdout.flush()

    say(f"{data.rows:,} rows, {options.rounds} rounds, seed {data.seed}; logs in {folder}")
    with stage(folder, data, options.epochs) as made:
        matrix = Matrix(made, options.rounds, options.patience, say)
        matrix.undisturbed()
        say(f"undisturbed run: {sum(map(len, made.expected['upserted'].values())):,} upserts")
        for number, kind in enumerate(chosen, 1):
            say(f"{number}/{len(chosen)} {kind.name}: {kind.what}")
            outcome = matrix.strike(kind)
            keep_outcome(WORK, data, options.rounds, outcome)
            say(f"  {kind.name}: {outcome.result} ({outcome.seconds:.0f} s)")
    if all(outcome.is_good for outcome in matrix.outcomes):
        shutil.rmtree(folder, ignore_errors=True)
    return matrix.outcomes


def _write_markdown(path: Path, text: str) -> None:
    """Into a page with the mark, below it; else as a file of its own."""
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    before, mark, _ = page.partition(_MARK)
    path.write_text(f"{before}{mark}\n{text}" if mark else text, encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    names = ", ".join(kind.name for kind in (*KINDS, *CLUSTER_KINDS))
    parser.add_argument("--kinds", default="*", help=f"only these, or `cluster-*`: {names}")
    parser.add_argument("--rounds", type=int, default=3, help="strikes of each kind")
    parser.add_argument("--rows", type=int, default=200_000, help="changes on both sides together")
    parser.add_argument("--epochs", type=int, default=40, help="of the undisturbed run")
    parser.add_argument("--seed", type=int, default=1, help="of data and moments")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds without any step")
    parser.add_argument(
        "--resume", action="store_true", help="leave out kinds that were good in an earlier run"
    )
    parser.add_argument(
        "--markdown", type=Path, help="write the table there, as into docs/operations.md"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
