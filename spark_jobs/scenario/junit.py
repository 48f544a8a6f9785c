"""Writes results as JUnit XML for CI servers: a suite per folder, a case per file."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from spark_jobs.errors import ConfigError
from spark_jobs.scenario.show import headline, problem_lines
from spark_jobs.scenario.suite import Result

# characters that XML 1.0 cannot hold, not even escaped
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(target: Path, results: Sequence[Result], at: datetime) -> None:
    """Raises ConfigError if the file cannot be written."""
    root = ET.Element("testsuites", {"name": "rejoin test", **_counts(results)})
    ordered = sorted(results, key=lambda result: str(result.path.parent))
    for folder, group in groupby(ordered, key=lambda result: result.path.parent):
        cases = list(group)
        stamp = at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
        names = {"name": str(folder), "timestamp": stamp, "skipped": "0", **_counts(cases)}
        suite = ET.SubElement(root, "testsuite", names)
        for result in cases:
            _case(suite, result)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        ET.ElementTree(root).write(target, encoding="utf-8", xml_declaration=True)
    except OSError as cause:
        raise ConfigError("FILE_UNWRITABLE", f"cannot write {target}: {cause}") from cause


def _counts(results: Sequence[Result]) -> dict[str, str]:
    counts = Counter(result.outcome for result in results)
    return {
        "tests": str(len(results)),
        "failures": str(counts["failed"]),
        "errors": str(counts["error"]),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }


def _case(suite: ET.Element, result: Result) -> None:
    parts = [part for part in result.path.parent.parts if part not in ("/", ".", "..")]
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": ".".join(parts) or "scenarios",
            "name": result.path.stem,
            "file": str(result.path),
            "time": f"{result.seconds:.3f}",
        },
    )
    if result.outcome != "passed":
        kind = "failure" if result.outcome == "failed" else "error"
        code = "difference" if result.error is None else result.error.problems[0].code
        problem = ET.SubElement(case, kind, {"message": _text(headline(result)), "type": code})
        problem.text = _text("\n".join(problem_lines(result)))


def _text(raw: str) -> str:
    return _NO_XML.sub("\ufffd", raw)
