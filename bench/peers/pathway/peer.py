"""Pathway, which keeps all state in memory: the left join of `regular-upsert`."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.avro import frame, record_schema, register
from bench.installing import run_step
from bench.peers.peer import PARALLELISM, Folders, Run
from bench.workloads.regular import ORDERS_A, ORDERS_B, SHIPPED
from bench.workloads.workload import PRODUCER, SinkKind, Workload

VERSION = "0.33.0"
_VENV = Path(__file__).resolve().parents[3] / "build" / "pathway-venv"
_PROGRAM = Path(__file__).with_name("upsert_join.py")


class Pathway:
    """Pathway in one process with a worker for each core.

    Its Kafka connector reads raw bytes, plain text or JSON, so that Python functions decode Avro.
    """

    name = "pathway"
    about = "in memory, two workers, Avro in Python functions, no checkpoints, at-least-once"

    def refusal(self, workload: Workload) -> str | None:
        if workload.name == "regular-upsert":
            return None
        return "written for regular-upsert only"

    def sink(self, workload: Workload) -> SinkKind:
        return "signed"

    def prepare(self) -> None:
        """Install it in an environment of its own: 1.6 GB."""
        marker = _VENV / f"pathway-{VERSION}"
        if not marker.exists():
            run_step(f"create {_VENV}", [sys.executable, "-I", "-m", "venv", str(_VENV)])
            pip = [str(_VENV / "bin" / "python"), "-I", "-m", "pip", "install"]
            run_step("install Pathway", [*pip, f"pathway=={VERSION}"])
            marker.touch()

    def settings(self, workload: Workload, folders: Folders) -> Mapping[str, str]:
        return {
            "PATHWAY_THREADS": str(PARALLELISM),
            # reads what is there, then ends; streaming mode has no end
            "mode": "static",
            **{f"producer.{name}": value for name, value in PRODUCER.items()},
        }

    def command(self, run: Run) -> list[str]:
        schema = record_schema("shipped_value", SHIPPED)
        schema_id = register(run.registry_url, f"{run.topic}-value", schema)
        settings = dict(self.settings(run.workload, run.folders))
        threads = f"PATHWAY_THREADS={settings.pop('PATHWAY_THREADS')}"
        given = {
            "servers": run.servers,
            "topics": [ORDERS_A.name, ORDERS_B.name],
            "sink": run.topic,
            "frame": frame(schema_id).hex(),
            "mode": settings.pop("mode"),
            "producer": {key.removeprefix("producer."): v for key, v in settings.items()},
        }
        file = run.folders.root / "job.json"
        file.write_text(json.dumps(given), encoding="utf-8")
        return ["env", threads, str(_VENV / "bin" / "python"), "-I", str(_PROGRAM), str(file)]
