"""`python -m tests.differential --cases 500 --seed 1`: rejoin beside DuckDB, any seed.

Exit code 0 if no case differs. Refused queries are counted by code, and so are steps that take
back and add an equal result row, which nobody promises not to happen.
"""

import argparse
import math
import sys
import time

from tests.differential.run import Tally, run_cases


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--keep-going", action="store_true", help="do not end at a failed case")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after this time")
    given = parser.parse_args(arguments)
    until = time.monotonic() + 60 * given.minutes
    numbers = range(given.first, given.first + given.cases)
    tally = run_cases(given.seed, numbers, _say, given.keep_going, until)
    for line in tally.lines():
        _say(line)
    return _exit_code(tally)


def _exit_code(tally: Tally) -> int:
    return 1 if tally.failures else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
