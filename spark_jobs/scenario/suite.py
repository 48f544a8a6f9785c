"""Finds scenario files and runs each in memory; what comes of one says nothing of the others."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from spark_jobs.errors import ConfigError, PositionedError, RejoinError
from spark_jobs.kernel.local_jvm import local_kernel
from spark_jobs.scenario.file import Scenario, read_scenario
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.runner import (
    NotRefused,
    Run,
    StepDiffers,
    bind_scenario,
    check_refusal,
)

SUFFIX = ".scenario"
Outcome: TypeAlias = Literal["passed", "failed", "error"]
Kernel: TypeAlias = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one file: `failed` names where the rows differ, `error` why it did not run."""

    path: Path
    seconds: float
    steps: int = 0
    failed: StepDiffers | NotRefused | None = None
    error: RejoinError | None = None

    @property
    def outcome(self) -> Outcome:
        if self.error is not None:
            return "error"
        return "passed" if self.failed is None else "failed"


def find_scenarios(paths: Sequence[Path], names: Sequence[str] = ()) -> list[Path]:
    """The files, and those in folders, whose path contains one of the names (any, if none given).

    Raises ConfigError if a path is not there, or nothing is left.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found |= dict.fromkeys(sorted(p for p in path.rglob(f"*{SUFFIX}") if p.is_file()))
        elif path.is_file():
            found[path] = None
        else:
            raise ConfigError("FILE_UNREADABLE", f"there is no {path}")
    wanted = [name.lower() for name in names]
    chosen = [p for p in found if not wanted or any(n in str(p).lower() for n in wanted)]
    if not chosen:
        where = ", ".join(map(str, paths))
        what = f"none of {len(found)} scenarios" if found else f"no *{SUFFIX} file"
        told = f"{what} in {where}" + (f" is named so: {', '.join(names)}" if names else "")
        raise ConfigError("SCENARIO_NONE", told, hint="docs/scenarios.md shows how to write one")
    return chosen


@contextmanager
def lazy_kernel(starting: Callable[[], None]) -> Iterator[Kernel]:
    """The kernel in a JVM that is started for the first scenario that needs it."""

    def start() -> Any:
        starting()
        return stack.enter_context(local_kernel())

    with ExitStack() as stack:
        yield cache(start)


def run_scenario(path: Path, kernel: Kernel) -> Result:
    """Its time is without that of the JVM's start."""
    began = time.monotonic()
    failed: StepDiffers | NotRefused | None = None
    error: RejoinError | None = None
    scenario: Scenario | None = None
    try:
        scenario = read_scenario(path)
        if scenario.fails is not None:
            check_refusal(scenario)
        else:
            bound = bind_scenario(scenario)
            spent = time.monotonic() - began
            backend = MemoryBackend(bound, kernel())
            began = time.monotonic() - spent
            Run(bound, backend).all()
    except (StepDiffers, NotRefused) as difference:
        failed = difference
    except RejoinError as problem:
        error = problem
        if isinstance(problem, PositionedError) and scenario is not None:
            problem.locate(scenario.text, scenario.source)
    steps = 0 if scenario is None else len(scenario.steps)
    return Result(path, time.monotonic() - began, steps, failed, error)
