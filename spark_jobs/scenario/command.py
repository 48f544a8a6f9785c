"""The command `rejoin test`: runs scenario files and prints a line for each."""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.scenario.junit import write_junit
from spark_jobs.scenario.show import as_json, show_result, summary
from spark_jobs.scenario.suite import Result, find_scenarios, lazy_kernel, run_scenario
from spark_jobs.terminal import AsJson, screen, write_json

NOT_PASSED = 2

Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Scenario files and folders.")]
Names = Annotated[
    list[str] | None,
    typer.Option("--name", "-k", help="Only files whose path contains this; repeatable."),
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Also write JUnit XML."),
]


def run_tests(
    paths: Paths, names: Names = None, junit: Junit = None, as_document: AsJson = False
) -> None:
    """Test a job's SQL with rows in files, in seconds, without a cluster or a broker.

    For teams that keep their SQL in a repository. A scenario names the job file, the rows that
    arrive and the rows that the sinks must receive. It runs through rejoin's own readers, joins and
    writers in one local JVM; docs/scenarios.md describes the files. Folders are searched for
    *.scenario. Exits 0 if all pass, else 2.
    """
    started, at = time.monotonic(), datetime.now(UTC)
    found = find_scenarios(paths, names or ())
    results = _run(found, quiet=as_document)
    seconds = time.monotonic() - started
    if as_document:
        write_json(as_json(results, seconds))
    else:
        screen(sys.stdout).print(summary(results, seconds))
    if junit is not None:
        write_junit(junit, results, at)
    if any(result.outcome != "passed" for result in results):
        raise typer.Exit(NOT_PASSED)


def _run(found: Sequence[Path], *, quiet: bool) -> list[Result]:
    """Runs each file and shows its result at once, unless `quiet`."""
    out = screen(sys.stdout)
    # on a terminal one console has to print both, or the status line would overwrite results
    progress = out if out.is_terminal and not quiet else screen(sys.stderr)
    width = max(len(str(path)) for path in found)
    results: list[Result] = []
    with (
        progress.status("") as live,
        lazy_kernel(lambda: live.update("starting a JVM ...")) as kernel,
    ):
        for number, path in enumerate(found, 1):
            live.update(f"{number} of {len(found)}: {path}")
            results.append(run_scenario(path, kernel))
            if not quiet:
                show_result(results[-1], width, out)
    return results
