"""The cells of an old job's operators, in memory.

`python -m tests.checkpoints.cells v1` writes them; run it with the kernel of the last release that
writes this state format.
"""

import base64
import gzip
import json
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.checkpoints.job import RECORD_MS, ROOT, OldJob
from tests.harness.gateway import kernel

Cells = dict[str, Any]


class InMemory:
    """Every query of an old job in a run of its own."""

    def __init__(self, job: OldJob) -> None:
        self._job = job
        plans = plan(bind((job.folder / "job.sql").read_text(encoding="utf-8")))
        roots = {p.name: p.root for p in plans}
        self._exchanged = {n for n, r in roots.items() if isinstance(r, KafkaSink) and r.exchange}
        self.runs = {p.name: kernel().local(to_json(p.root)) for p in plans}
        self._offsets: Counter[tuple[str, int]] = Counter()

    def step(self, step: str) -> list[dict[str, Any]]:
        """Feeds the records of a step; gives what the sinks receive, as `OldJob.written` has it."""
        fed: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for record in self._job.records:
            if record["step"] == step:
                fed[record["table"]].append(self._as_json(record))
        for run in self.runs.values():
            for table, records in fed.items():
                run.feed(table, json.dumps(records))
        return [record for name in self.runs for record in self._written(name)]

    def _written(self, name: str) -> list[dict[str, Any]]:
        """Before a sink that is exchanged once more, the writer puts deletions first."""
        made = [
            {"table": name, "key": _json(r["key"]), "value": _json(r["value"])}
            for r in json.loads(self.runs[name].step())["records"]
        ]
        if name in self._exchanged:
            made.sort(key=lambda record: record["value"] is not None)
        return made

    def cells(self) -> Cells:
        return {name: json.loads(run.cells()) for name, run in self.runs.items()}

    def restore(self, cells: Cells) -> None:
        for name, run in self.runs.items():
            run.restoreCells(json.dumps(cells[name]))

    def _as_json(self, record: dict[str, Any]) -> dict[str, Any]:
        place = (record["table"], record["partition"])
        self._offsets[place] += 1
        return {
            "partition": place[1],
            "offset": self._offsets[place] - 1,
            "timestamp": RECORD_MS,
            "key": _base64(record["key"]),
            "value": _base64(record["value"]),
            "headers": [],
        }


def read_cells(folder: Path) -> Cells:
    with gzip.open(folder / "cells.json.gz", "rt", encoding="utf-8") as packed:
        found: Cells = json.load(packed)
    return found


def main(version: str) -> None:
    folder = ROOT / version
    with tempfile.TemporaryDirectory() as work:
        run = InMemory(OldJob(folder, Path(work), "localhost:9092"))
    run.step("before")
    with (folder / "cells.json.gz").open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as packed:
        packed.write(json.dumps(run.cells(), indent=0).encode())


def _base64(part: Any) -> str | None:
    return None if part is None else base64.b64encode(json.dumps(part).encode()).decode()


def _json(part: str | None) -> Any:
    return None if part is None else json.loads(base64.b64decode(part))


if __name__ == "__main__":
    main(sys.argv[1])
