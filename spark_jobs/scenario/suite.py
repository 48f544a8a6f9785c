"""Finds scenario files and runs each of them in memory, independently of the others."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from spark_jobs.errors import ConfigError, PositionedError, RejoinError
from spark_jobs.kernel.standalone import local_kernel
from spark_jobs.scenario.file import Scenario, read_scenario
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.runner import (
    NotRefused,
    ScenarioRun,
    StepDifference,
    bind_scenario,
    check_refusal,
)

SUFFIX = ".scenario"
ScenarioOutcome: TypeAlias = Literal["passed", "failed", "error"]
KernelStarter: TypeAlias = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one file. `failed` says where rows differ, `error` why it could not run."""

    path: Path
    seconds: float
    steps: int = 0
    failed: StepDifference | NotRefused | None = None
    error: RejoinError | None = None

    @property
    def outcome(self) -> ScenarioOutcome:
        if self.error is not None:
            return "error"
        return "passed" if self.failed is None else "failed"


def find_scenarios(paths: Sequence[Path], names: Sequence[str] = ()) -> list[Path]:
    """Find scenario files below `paths` whose path contains one of `names`, if any are given.

    Raises ConfigError if a path does not exist or no file is left.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found |= dict.fromkeys(sorted(p for p in path.rglob(f"*{SUFFIX}") if p.is_file()))
        elif path.is_file():
            found[path] = None
        else:
            raise ConfigError("FILE_UNREADABLE", f"{path} does not exist")
    parts = [name.lower() for name in names]
    chosen = [p for p in found if not parts or any(part in str(p).lower() for part in parts)]
    if not chosen:
        where = ", ".join(map(str, paths))
        what = f"none of {len(found)} scenarios" if found else f"no *{SUFFIX} file"
        text = f"{what} in {where}" + (f" has a path with {', '.join(names)}" if names else "")
        raise ConfigError("SCENARIO_NONE", text, hint="docs/scenarios.md shows how to write one")
    return chosen


@contextmanager
def lazy_kernel(starting: Callable[[], None]) -> Iterator[KernelStarter]:
    """A function that returns the kernel; its first call starts the JVM."""

    def start() -> Any:
        starting()
        return stack.enter_context(local_kernel())

    with ExitStack() as stack:
        yield cache(start)


def run_scenario(path: Path, kernel: KernelStarter) -> Result:
    """Run one file; its seconds do not include the start of the JVM."""
    began = time.monotonic()
    failed: StepDifference | NotRefused | None = None
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
            ScenarioRun(bound, backend).all()
    except (StepDifference, NotRefused) as difference:
        failed = difference
    except RejoinError as problem:
        error = problem
        if isinstance(problem, PositionedError) and scenario is not None:
            problem.locate(scenario.text, scenario.source)
    steps = 0 if scenario is None else len(scenario.steps)
    return Result(path, time.monotonic() - began, steps, failed, error)
