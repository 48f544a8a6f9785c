"""Cells that older releases wrote are read, and none is written differently unnoticed."""

from pathlib import Path

import pytest

from spark_jobs.streaming.manifest import STATE_FORMAT
from tests.checkpoints.cells import InMemory, read_cells
from tests.checkpoints.job import ROOT, OldJob

pytestmark = pytest.mark.service  # 18 queries in memory are too many for `make test-fast`

VERSIONS = sorted(path.name for path in ROOT.glob("v*"))
NEWEST = f"v{STATE_FORMAT}"
TAGS = set("ABCDEGIKLMNTU")
# fed by another operator: up to 0.1.0 it was left to chance in which order rows of its keys come
REKEYED = {("named", 1), ("residual_ttl", 1), ("by_customer", 1), ("by_customer", 2)}


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[OldJob, InMemory]:
    job = OldJob(ROOT / request.param, tmp_path, "localhost:9092")
    return job, InMemory(job)


@pytest.mark.parametrize("run", [NEWEST], indirect=True)
def test_cells_are_laid_out_as_their_version_says(run: tuple[OldJob, InMemory]) -> None:
    """Fails with a changed layout. Then: give the cell a new version byte, read both, raise
    STATE_FORMAT, and make a folder for it (CONTRIBUTING.md, "A state format").
    """
    job, now = run
    now.step(job.steps[0])
    recorded, written = read_cells(job.folder), now.cells()
    assert written.keys() == recorded.keys()
    for query, operators in recorded.items():
        for number, groups in enumerate(operators):
            shown = in_order if (query, number) in REKEYED else dict
            assert shown(written[query][number]) == shown(groups), f"{query}, operator {number}"


def in_order(groups: dict[str, dict[str, str]]) -> dict[str, dict[str, list[int]]]:
    """The cells with their bytes sorted: the same rows, in whichever order."""
    return {
        group: {cell: sorted(bytes.fromhex(value)) for cell, value in cells.items()}
        for group, cells in groups.items()
    }


@pytest.mark.parametrize("run", VERSIONS, indirect=True)
def test_every_cell_can_be_read_and_goes_on(run: tuple[OldJob, InMemory]) -> None:
    """The expected rows are of a Spark run of the release that wrote this format, but for the rows
    of `by_customer` that several orders compete for: which one wins was left to chance there.
    """
    job, now = run
    now.restore(read_cells(job.folder))
    written = [record for step in job.steps[1:] for record in now.step(step)]
    expected = (job.folder / "expected.txt").read_text(encoding="utf-8").splitlines()
    assert job.fold([*job.recorded(), *written]) == expected


def test_temporal_joins_go_on_without_a_memory_of_their_probe_rows(tmp_path: Path) -> None:
    """The cells are of a kernel that remembered no rows (docs/semantics.md, U6)."""
    job = OldJob(ROOT / "probes", tmp_path, "localhost:9092")
    now = InMemory(job)
    now.restore(read_cells(job.folder))
    found = {
        step: sorted(
            (r["table"], r["value"]["op"], *r["value"]["data"].values()) for r in now.step(step)
        )
        for step in job.steps[1:]
    }
    assert found == {
        "rates": [],
        # by processing time joined with the rate of now; by event time dropped as late, but for
        # order 3, which waits for the watermark
        "orders": [
            ("now_", "+U", 1, 3, 116),
            ("now_", "+U", 3, 8, 116),
            ("now_", "-U", 1, 2, 116),
            ("now_", "-U", 3, 7, 116),
        ],
        "newer": [("now_", "+I", 4, 1, 118), ("then_", "+U", 3, 8, 116)],
        # what has been joined since is known; order 1 is unknown still by event time
        "changes": [
            ("now_", "+U", 1, 4, 118),
            ("now_", "+U", 3, 9, 118),
            ("now_", "-U", 1, 3, 116),
            ("now_", "-U", 3, 8, 116),
            ("then_", "+U", 3, 9, 116),
            ("then_", "-U", 3, 8, 116),
        ],
    }


def test_visits_that_one_cell_listed_still_come(tmp_path: Path) -> None:
    """The cells are of a kernel that listed all slots in use in the group's cell."""
    job = OldJob(ROOT / "slots", tmp_path, "localhost:9092")
    now = InMemory(job)
    now.restore(read_cells(job.folder))
    assert versions_of_groups(now) == {1}
    half = {r["value"]["page"]: r["value"]["bought_at"] for r in now.step("half")}
    assert half == dict.fromkeys(range(200)) | {7: "2024-01-01 04:30:00"}
    assert versions_of_groups(now) == {2}
    rest = {r["value"]["page"]: r["value"]["bought_at"] for r in now.step("rest")}
    assert rest == dict.fromkeys([*range(200, 400), -2]) | {250: "2024-01-15 04:01:00"}
    assert versions_of_groups(now) == {1}


def versions_of_groups(run: InMemory) -> set[int]:
    [operator] = run.cells()["bought"]
    return {bytes.fromhex(cells[b"G".hex()])[0] for cells in operator.values()}


def test_every_kind_of_cell_is_there() -> None:
    """By the tag in front of a cell's name: what is not there is not tested either."""
    kept = read_cells(ROOT / NEWEST).values()
    groups = [cells for operators in kept for groups in operators for cells in groups.values()]
    assert {bytes.fromhex(cell)[:1].decode() for cells in groups for cell in cells} == TAGS


def test_no_cell_has_a_later_version_than_manifests_say() -> None:
    kept = read_cells(ROOT / NEWEST).values()
    groups = [cells for operators in kept for groups in operators for cells in groups.values()]
    versions = {bytes.fromhex(value)[0] for cells in groups for value in cells.values()}
    assert max(versions) == STATE_FORMAT
