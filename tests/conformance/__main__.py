"""`python -m tests.conformance PATH...`: a line per case, then how many passed."""

import sys
import traceback
from collections import Counter
from pathlib import Path

from tests.conformance.case import Case, Failed, Skipped, Verdict, find_cases, read_case
from tests.conformance.operator import run_operator_case
from tests.conformance.sql import run_sql_case
from tests.harness.gateway import kernel


def judge(case: Case) -> Verdict:
    name = str(case["name"])
    try:
        if "operator" in case:
            run_operator_case(case, kernel().machine)
        else:
            run_sql_case(case)
    except Skipped as reason:
        return Verdict(name, "skipped", str(reason))
    except Failed as reason:
        return Verdict(name, "FAILED", str(reason))
    except Exception:
        return Verdict(name, "FAILED", traceback.format_exc())
    return Verdict(name, "passed")


def main(arguments: list[str]) -> int:
    if not arguments:
        sys.stderr.write("usage: python -m tests.conformance PATH...\n")
        return 2
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for path in find_cases([Path(a) for a in arguments]):
        verdict = judge(read_case(path))
        counts[verdict.outcome] += 1
        if verdict.outcome == "skipped":
            reasons[verdict.reason] += 1
        sys.stdout.write(f"{verdict}\n")
        sys.stdout.flush()
    for reason, count in sorted(reasons.items()):
        sys.stdout.write(f"  {count:4} skipped, {reason}\n")
    passed, failed, skipped = (counts[k] for k in ("passed", "FAILED", "skipped"))
    sys.stdout.write(f"{passed} passed, {failed} failed, {skipped} skipped\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
