"""`python -m bench.delivery`: measures the cost of exactly-once over at-least-once delivery.

The same job runs over the same topics with both guarantees in turns, so that other load on the
machine affects both alike. The rows of every run are verified. Run it by hand on an idle machine.
"""

from statistics import median

from bench.peers.rejoin import Rejoin
from bench.turns import parser_of_turns, say, turns, workload_of
from bench.workloads.workload import Guarantee

_GUARANTEES: tuple[Guarantee, ...] = ("at-least-once", "exactly-once")


def main() -> None:
    options = parser_of_turns("bench.delivery", __doc__, rows=2_000_000, turns=5).parse_args()
    workload, data = workload_of(options)
    Rejoin({}).prepare()
    seconds: dict[Guarantee, list[float]] = {guarantee: [] for guarantee in _GUARANTEES}
    with turns("delivery", workload, data, options.timeout) as made:
        for turn in range(options.turns):
            for guarantee in _GUARANTEES if turn % 2 == 0 else reversed(_GUARANTEES):
                measured, _ = made.run(Rejoin({}), f"result_{guarantee}_{turn}", guarantee)
                seconds[guarantee].append(measured.seconds)
                say(f"turn {turn + 1} {guarantee}: {measured.seconds:.1f} s")
    _report(workload.name, options.rows, seconds)


def _report(job: str, rows: int, seconds: dict[Guarantee, list[float]]) -> None:
    once, least = seconds["exactly-once"], seconds["at-least-once"]
    pairs = [a / b for a, b in zip(once, least, strict=True)]
    ratio = median(once) / median(least)
    say(f"{job}, {rows:,} records, {len(once)} turns")
    say(f"at-least-once  median {median(least):.1f} s")
    say(f"exactly-once   median {median(once):.1f} s")
    say(f"ratio of medians {ratio:.3f}, median of pairs {median(pairs):.3f}")


if __name__ == "__main__":
    main()
