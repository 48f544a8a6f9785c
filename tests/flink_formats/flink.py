"""What a real Flink makes of the records and rows of cases.py, as flink.json has it.

`python -m tests.flink_formats.flink` asks Flink anew.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.differential.flink.client import FlinkProcess
from tests.flink_formats.cases import CASES, asked

RECORDED = Path(__file__).with_name("flink.json")
_SERVER = Path(__file__).with_name("in_flink.py")


def answers() -> Iterator[list[Any]]:
    with FlinkProcess(_SERVER) as flink:
        for case in CASES:
            found = flink.ask(asked(case))
            if "error" in found:
                raise ValueError(f"{case}: {found['error']}")
            yield found["answers"]


def main() -> None:
    lines = (json.dumps(answer, ensure_ascii=False) for answer in answers())
    text = ",\n".join(lines)
    RECORDED.write_text(f"[\n{text}\n]\n", encoding="utf-8")
    sys.stdout.write(f"{len(CASES)} cases\n")


if __name__ == "__main__":
    main()
