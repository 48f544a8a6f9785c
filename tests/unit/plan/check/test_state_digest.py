"""Manifests of release 0.1.0 hold a digest; it was computed by that release for these plans."""

import json
from pathlib import Path
from typing import get_args

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.check.state_digest import FIELDS, state_digest
from spark_jobs.plan.nodes.physical import Machine
from spark_jobs.plan.planner import plan, plan_query
from spark_jobs.sql.bind.binder import bind, bind_query

TESTS = Path(__file__).parents[3]
DIGESTS = json.loads((TESTS / "checkpoints" / "v1" / "digests.json").read_text(encoding="utf-8"))


def digests(text: str) -> list[str]:
    try:
        return [state_digest(planned.root) for planned in plan(bind(text))]
    except SqlErrors:
        bound = bind_query(text)
        return [state_digest(plan_query(bound.query, bound.settings).root)]


@pytest.mark.parametrize("name", DIGESTS)
def test_the_digest_is_what_the_release_computed(name: str) -> None:
    text = (TESTS / "plans" / f"{name}.sql").read_text(encoding="utf-8")
    assert digests(text) == DIGESTS[name]


def test_every_operator_has_a_digest() -> None:
    assert set(FIELDS) == {machine.kind for machine in get_args(Machine)}
