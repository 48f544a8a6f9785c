"""`python -m tests.conformance [--spark] PATH...`: a line per case, then how many passed.

In memory; with `--spark` each SQL case once in Spark instead, but for those that need a clock.
"""

import sys
import traceback
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from py4j.protocol import Py4JJavaError

from spark_jobs.scenario.runner import Backend, BoundScenario
from tests.conformance.case import Case, Failed, Skipped, Verdict, find_cases, read_case
from tests.conformance.operator import run_operator_case
from tests.conformance.sql import run_sql_case
from tests.harness.gateway import new_machine
from tests.harness.spark import SparkBackend, spark_session


def judge(case: Case, in_spark: Callable[[BoundScenario], Backend] | None) -> Verdict:
    name = str(case["name"])
    try:
        if "operator" in case:
            run_operator_case(case, new_machine)
        else:
            run_sql_case(case, in_spark)
    except Skipped as reason:
        return Verdict(name, "skipped", str(reason))
    except Failed as reason:
        return Verdict(name, "FAILED", str(reason))
    except Exception as error:
        return Verdict(name, "FAILED", _told(error))
    return Verdict(name, "passed")


def _told(error: Exception) -> str:
    """A Java exception in a line, with the place in the kernel; of others all."""
    text = str(error)
    if not isinstance(error, Py4JJavaError):
        return traceback.format_exc()
    lines = [line.strip() for line in text.splitlines()]
    what = next((line for line in lines if line.startswith(": ")), text)
    place = next((line for line in lines if line.startswith("at org.apache.spark.sql.rejoin")), "")
    return f"{what.removeprefix(': ')} {place}"


def main(arguments: list[str]) -> int:
    paths = [Path(a) for a in arguments if a != "--spark"]
    if not paths:
        sys.stderr.write("usage: python -m tests.conformance [--spark] PATH...\n")
        return 2
    if "--spark" not in arguments:
        return _all(paths, None)
    with TemporaryDirectory() as folder, spark_session(Path(folder)) as spark:
        cases = (Path(folder) / f"case-{number}" for number in count())
        return _all(paths, lambda bound: SparkBackend(bound, spark, next(cases)))


def _all(paths: list[Path], in_spark: Callable[[BoundScenario], Backend] | None) -> int:
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for path in find_cases(paths):
        verdict = judge(read_case(path), in_spark)
        counts[verdict.outcome] += 1
        if verdict.outcome == "skipped":
            reasons[verdict.reason] += 1
        sys.stdout.write(f"{verdict}\n")
        sys.stdout.flush()
    for reason, number in sorted(reasons.items()):
        sys.stdout.write(f"  {number:4} skipped, {reason}\n")
    passed, failed, skipped = (counts[k] for k in ("passed", "FAILED", "skipped"))
    sys.stdout.write(f"{passed} passed, {failed} failed, {skipped} skipped\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
