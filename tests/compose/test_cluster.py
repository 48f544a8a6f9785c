"""The profile `cluster`: core's job on a Spark master and two workers, each a container."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.compose.podman import podman
from tests.compose.project import Project

pytestmark = pytest.mark.timeout(1800)

WORKERS = ("worker-1", "worker-2")
ASK = "import httpx, sys; sys.stdout.write(httpx.get('http://127.0.0.1:8080/json/').text)"


@pytest.fixture
def project(built: None) -> Iterator[Project]:
    project = Project()
    try:
        project.up("cluster")
        yield project
    finally:
        project.down()
    assert project.left() == []


def written(project: Project) -> int:
    answer = httpx.get(f"http://127.0.0.1:{project.ports['PAGE']}/queries", timeout=10)
    return sum(query["output_rows_total"] for query in answer.raise_for_status().json())


def busy_workers(project: Project) -> int:
    told = json.loads(project.exec("spark-master", "python", "-c", ASK))
    return sum(worker["coresused"] for worker in told["workers"] if worker["state"] == "ALIVE")


def test_executors_run_on_both_workers_and_one_may_die(project: Project) -> None:
    project.wait(lambda: written(project) > 300, 300, "cluster-driver", "joins nothing")
    assert busy_workers(project) == len(WORKERS)
    podman("kill", "--signal=KILL", project.container("worker-1"))
    before = written(project)
    project.wait(lambda: written(project) > before + 300, 300, "cluster-driver", "does not go on")
    podman("start", project.container("worker-1"))
    project.wait(lambda: busy_workers(project) == 2, 120, "worker-1", "has no executor")
    podman("stop", "--time=60", project.container("producer"))
    # the producer judges every row that it reads, and says with its exit code if one is wrong
    assert project.inspect("producer")["State"]["ExitCode"] == 0, project.logs("producer")
    assert " 0 wrong   0 doubled" in project.logs("producer")
