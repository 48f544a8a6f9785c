"""What the command line of `rejoin bench` asks for, and what it refuses."""

import pytest
from typer.testing import CliRunner

from bench.campaign import full_steps, quick_steps
from bench.cli import _steps
from bench.peers.catalog import peers
from bench.workloads.catalog import WORKLOADS
from spark_jobs.cli import app

PEERS = tuple(peers({}, {}))


def test_one_workload() -> None:
    (step,) = _steps("three-way", False, False, "rejoin,flink-heap", 5_000, None)
    assert (step.workload, step.rows, step.peers) == ("three-way", 5_000, ("rejoin", "flink-heap"))
    (step,) = _steps("hot-key", False, False, None, None, None)
    assert (step.rows, step.peers) == (4_000_000, ("rejoin",))


@pytest.mark.parametrize("quick", [False, True])
def test_all_workloads(quick: bool) -> None:
    steps = quick_steps(PEERS) if quick else full_steps(PEERS)
    assert sorted(step.workload for step in steps) == sorted(WORKLOADS)
    assert [step.workload for step in steps[:2]] == ["regular-upsert", "temporal-left"]
    for step in steps:
        assert step.peers[0] == "rejoin"
        assert ("flink" in step.peers) != quick
        no_batches = step.workload.startswith(("temporal", "interval", "reading"))
        assert ("flink-tuned-mini-batch" in step.peers) != no_batches


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a workload or --all"),
        (["hot-key", "--all"], "a workload or --all"),
        (["regular"], "none of"),
        (["hot-key", "--peers", "flonk"], "none of"),
        (["hot-key", "--quick"], "--quick goes with --all"),
        (["--all", "--keys", "3"], "--keys goes with one"),
        (["hot-key", "--set", "x"], "has no '='"),
    ],
)
def test_what_is_refused(arguments: list[str], message: str) -> None:
    answer = CliRunner().invoke(app, ["bench", *arguments], env={"COLUMNS": "300"})
    assert answer.exit_code == 2
    assert message in answer.output


@pytest.mark.parametrize("peer", peers({}, {}).values(), ids=PEERS)
def test_every_peer_says_what_it_is(peer: object) -> None:
    made = peers({}, {})[getattr(peer, "name", "")]
    assert made.about
    assert any(made.refusal(workload) is None for workload in WORKLOADS.values())
