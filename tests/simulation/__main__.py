"""`python -m tests.simulation --histories 10000 --seed 1`: jobs under random faults, in memory.

Exit code 0 if no rule was broken; with `--fault`, which breaks the simulated world on purpose, if
one was.
"""

import argparse
import sys

from tests.simulation.history import FAULTS
from tests.simulation.run import run_histories


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    parser.add_argument("--fault", choices=FAULTS, help="a fault that has to be found")
    parser.add_argument("--keep-going", action="store_true", help="do not end at a violation")
    given = parser.parse_args(arguments)
    tally = run_histories(
        given.seed, given.first, given.histories, _say, given.fault, given.keep_going
    )
    _say(tally.text())
    return 0 if bool(tally.violations) == (given.fault is not None) else 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
