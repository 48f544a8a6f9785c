"""`python -m tests.differential --cases 500 --seed 1`: rejoin beside DuckDB, any seed.

Exit code 0 if no case differs. Refused queries are counted by code, and so are steps that take
back and add an equal result row, which nobody promises not to happen.

With `--flink` the query of each case also runs in Flink SQL, which is installed on demand, and the
final rows are compared; this takes Flink about a second per case. A case that DuckDB and rejoin do
not agree on says what Flink answers. Where only Flink differs, the case is printed and counted and
is no failure. What Flink does not answer is counted by message, what is not compared by reason.
"""

import argparse
import math
import sys
import time
from contextlib import nullcontext

from tests.differential.flink.client import FlinkProcess
from tests.differential.generate import HISTORIES
from tests.differential.run import Tally, run_cases


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument(
        "--every", type=int, default=1, help=f"every n-th case; {HISTORIES} in a row share a query"
    )
    parser.add_argument("--keep-going", action="store_true", help="do not end at a failed case")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after this time")
    parser.add_argument("--flink", action="store_true", help="ask Flink as well")
    given = parser.parse_args(arguments)
    numbers = range(given.first, given.first + given.cases * given.every, given.every)
    with FlinkProcess() if given.flink else nullcontext() as flink:
        until = time.monotonic() + 60 * given.minutes
        tally = run_cases(given.seed, numbers, _say, given.keep_going, until, flink)
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
