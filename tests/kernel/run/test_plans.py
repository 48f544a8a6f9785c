"""The kernel reads every plan that `tests/plans` shows, and binds all its expressions."""

import json
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.nodes.physical import QueryPlan
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.plan.planner import plan, plan_query
from spark_jobs.sql.bind.binder import bind, bind_query
from tests.harness.gateway import kernel

JOBS = sorted(Path(__file__).parents[2].joinpath("plans").glob("*.sql"))
PLANNED = [job for job in JOBS if not job.stem.startswith("refused_")]


def plans_of(job: Path) -> tuple[QueryPlan, ...]:
    """Those of the job's INSERTs, or of the bare SELECT at its end."""
    text = job.read_text(encoding="utf-8")
    try:
        return plan(bind(text, job.name))
    except SqlErrors as problems:
        if problems.codes != ("SELECT_WITHOUT_SINK",):
            raise
        bound = bind_query(text, job.name)
        return (plan_query(bound.query, bound.settings),)


@pytest.mark.parametrize("job", PLANNED, ids=[j.stem for j in PLANNED])
def test_kernel_reads_the_plan(job: Path) -> None:
    for planned in plans_of(job):
        run: Any = kernel().local(to_json(planned.root))
        found = json.loads(run.step())
        has_constants = any(not node.inputs for node in stateful_nodes(planned.root))
        assert bool(found["rows"]) == has_constants
        assert found["rejects"] == []
