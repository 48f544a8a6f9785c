"""Flink computes what tests/aggregates/flink.json has recorded."""

import json

import pytest

from tests.aggregates.cases import CHANGELOGS
from tests.aggregates.flink import RECORDED, asked, batches
from tests.differential.flink.client import FlinkProcess


@pytest.mark.timeout(1_800)  # Flink may have to be installed
def test_flink_still_gives_what_is_recorded() -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    with FlinkProcess() as flink:
        found = [e for over in CHANGELOGS for calls in batches() for e in asked(flink, over, calls)]
    assert json.loads(json.dumps(found)) == recorded
