"""`python -m bench.delivery`: measures the cost of exactly-once over at-least-once delivery.

The same job runs over the same topics with both guarantees in turns, so that other load on the
machine affects both alike. The rows of every run are verified. Run it by hand on an idle machine.
"""

import argparse
import sys
from statistics import median

from bench.engines import Rejoin
from bench.jobs import JOBS, Guarantee
from bench.load import BenchData
from bench.turns import turns

_GUARANTEES: tuple[Guarantee, ...] = ("at-least-once", "exactly-once")


def main() -> None:
    options = _options()
    job = JOBS[options.job]
    data: BenchData = job.data(options.rows, options.keys or min(job.default_keys, options.rows))
    Rejoin({}).prepare()
    seconds: dict[Guarantee, list[float]] = {guarantee: [] for guarantee in _GUARANTEES}
    with turns("delivery", job, data, options.timeout) as made:
        for turn in range(options.turns):
            for guarantee in _GUARANTEES if turn % 2 == 0 else reversed(_GUARANTEES):
                measured, _ = made.run(Rejoin({}), f"result_{guarantee}_{turn}", guarantee)
                seconds[guarantee].append(measured.seconds)
                _say(f"turn {turn + 1} {guarantee}: {measured.seconds:.1f} s")
    _report(job.name, options.rows, seconds)


def _report(job: str, rows: int, seconds: dict[Guarantee, list[float]]) -> None:
    once, least = seconds["exactly-once"], seconds["at-least-once"]
    pairs = [a / b for a, b in zip(once, least, strict=True)]
    ratio = median(once) / median(least)
    _say(f"{job}, {rows:,} records, {len(once)} turns")
    _say(f"at-least-once  median {median(least):.1f} s")
    _say(f"exactly-once   median {median(once):.1f} s")
    _say(f"ratio of medians {ratio:.3f}, median of pairs {median(pairs):.3f}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.delivery", description=__doc__)
    parser.add_argument("--job", choices=sorted(JOBS), default="regular")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--turns", type=int, default=5, help="runs per guarantee")
    parser.add_argument("--timeout", type=float, default=900.0, help="most seconds for one run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
