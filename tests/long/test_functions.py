"""Flink computes what tests/functions/flink.json has recorded."""

import json

import pytest

from tests.differential.flink.client import FlinkProcess
from tests.functions.flink import RECORDED, asked, batches


@pytest.mark.timeout(1_800)  # Flink may have to be installed
def test_flink_still_gives_what_is_recorded() -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    with FlinkProcess() as flink:
        found = [json.loads(json.dumps(e)) for b in batches() for e in asked(flink, b)]
    assert found == recorded
