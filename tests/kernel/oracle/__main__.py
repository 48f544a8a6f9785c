"""`python -m tests.kernel.oracle --machine regular --steps 100000`: long runs, any seed."""

import argparse
import random
import sys
import time

from tests.harness.gateway import new_machine
from tests.kernel.oracle import (
    aggregate,
    deduplicate,
    interval,
    interval_changes,
    latest,
    materializer,
    multi,
    normalize,
    plans,
    rank,
    regular,
    temporal,
    ttl,
    unnest,
)
from tests.kernel.oracle.check import Case, MakeMachine, Shrinker, check

MAKERS = {
    "regular": regular.random_case,
    "ttl": ttl.random_case,
    "multi": multi.random_case,
    "interval": interval.random_case,
    "interval_changes": interval_changes.random_case,
    "interval_early": interval.random_early_case,
    "interval_changes_early": interval_changes.random_early_case,
    "temporal": temporal.random_case,
    "latest": latest.random_case,
    "normalize": normalize.random_case,
    "deduplicate": deduplicate.random_case,
    "aggregate": aggregate.random_case,
    "rank": rank.random_case,
    "unnest": unnest.random_case,
    "materializer": materializer.random_case,
    "plan": plans.random_case,
}


def maker(machine: str) -> MakeMachine:
    """What runs the cases of this kind."""
    return plans.PlanMachine if machine == "plan" else new_machine


def random_case(machine: str, seed: int, index: int, size: int | None = None) -> Case:
    """The same numbers give the same case, on every computer."""
    name = f"{machine} --seed {seed} --case {index}"
    rng = random.Random(name)  # noqa: S311 - repeatable, not secret
    return MAKERS[machine](name, rng, size or rng.choice([30, 100, 300]))


def run(machine: str, seed: int, steps: int, make_machine: MakeMachine, first: int = 0) -> int:
    """Check random cases until they add up to `steps` events; gives the number of cases."""
    done = 0
    index = first
    while done < steps:
        case = random_case(machine, seed, index)
        failure = check(case, make_machine)
        if failure is not None:
            smallest = Shrinker(make_machine).shrink(failure)
            raise AssertionError(smallest.report())
        done += sum(len(batch) for batch in case.batches)
        index += 1
    return index - first


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kernel.oracle", description=__doc__)
    parser.add_argument("--machine", choices=[*MAKERS, "all"], default="all")
    parser.add_argument("--steps", type=int, default=100_000, help="events in all cases together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="run this case only")
    given = parser.parse_args(arguments)
    for machine in MAKERS if given.machine == "all" else [given.machine]:
        started = time.monotonic()
        steps = 1 if given.case is not None else given.steps
        try:
            cases = run(machine, given.seed, steps, maker(machine), given.case or 0)
        except AssertionError as failure:
            sys.stdout.write(f"{failure}\n{machine}: FAILED\n")
            return 1
        seconds = time.monotonic() - started
        sys.stdout.write(f"{machine}: {cases} cases, {given.steps} steps, {seconds:.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
