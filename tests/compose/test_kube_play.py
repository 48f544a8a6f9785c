"""The pod of the StatefulSet, run by podman as `overlays/local` describes it."""

import json
from collections.abc import Iterator

import pytest

from tests.compose.kube_play import Played, playable, played
from tests.harness import manifests

pytestmark = pytest.mark.timeout(2400)

POD = "rejoin-0"
ASK = "import httpx, sys; sys.stdout.write(httpx.get('http://127.0.0.1:9640{}', timeout=5).text)"


@pytest.fixture(scope="module")
def pods(built: None) -> Iterator[Played]:
    with played(playable(manifests.built("local"))) as running:
        yield running


def ask(pods: Played, path: str) -> str:
    return pods.exec(POD, "sidecar", "python", "-c", ASK.format(path))


def written(pods: Played) -> int:
    return sum(query["output_rows_total"] for query in json.loads(ask(pods, "/queries")))


def test_the_pod_joins_the_shops_orders_and_goes_on_after_a_kill(pods: Played) -> None:
    pods.wait(lambda: written(pods) > 500, 300, "no joined rows")
    before = written(pods)
    pods.kill(POD, "driver")
    pods.wait(lambda: written(pods) > before + 500, 300, "the next driver does not go on")


@pytest.mark.parametrize("container", ["driver", "sidecar"])
def test_containers_are_guarded(pods: Played, container: str) -> None:
    assert pods.exec(POD, container, "id", "-u").strip() == "185"
    status = pods.exec(POD, container, "cat", "/proc/self/status")
    assert "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status
    refused = pods.exec(POD, container, "sh", "-c", "touch /opt/rejoin/x 2>&1 || true")
    assert "Read-only file system" in refused


@pytest.mark.parametrize("silent_s", [600, 300])
def test_the_drivers_probes_pass(pods: Played, silent_s: int) -> None:
    """With the command of the startup and of the liveness probe."""
    probe = ("python", "-m", "service.probe", "--status-dir=/var/run/rejoin")
    pods.exec(POD, "driver", *probe, f"--silent-after={silent_s}")
