"""The image, docker-compose.yml and the pod of Kubernetes, run by podman as a user would run them.

One file, so that one process has all containers. Core's driver is killed early: its alert takes
four minutes to fire, in which the profile cdc is tested.
"""

import json
import shutil
import sys
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect, sync_playwright

from spark_jobs.demo.play import RESULTS
from tests.compose.kube_play import Played, playable, played
from tests.compose.orders import problems
from tests.compose.podman import ROOT, podman
from tests.compose.project import Project
from tests.compose.prometheus import firing, targets
from tests.compose.shop import Shop
from tests.e2e.topics import ends_of
from tests.harness import manifests
from tests.harness.schemas import schema_differences

pytestmark = pytest.mark.timeout(1800)

CORE = ("driver", "sidecar", "producer")
CDC = ("cdc-driver", "cdc-sidecar", "subscriber")
TABLES = ("customers", "purchases", "payments")
# each may be restarted beside those of its line; the next line needs it
RESTARTED = (
    ("broker", "postgres", "prometheus"),
    ("registry",),
    ("connect", "connector", "cdc-driver", "cdc-sidecar", "subscriber", "sidecar", "producer"),
)
BROWSER = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
CONNECTOR = "http://127.0.0.1:8083/connectors/shop"
POD = "rejoin-0"
ASK = "import httpx, sys; sys.stdout.write(httpx.get('http://127.0.0.1:{}', timeout=5).text)"


@pytest.fixture(scope="module")
def project(built: None) -> Iterator[Project]:
    """The profiles core and observability; nothing is left of any profile, however it ends."""
    project = Project()
    begun = time.monotonic()
    try:
        project.up("core", "observability")
        _say(f"core and observability are healthy after {_since(begun)}")
        yield project
    finally:
        project.down()
    assert project.left() == []


@pytest.fixture(scope="module")
def killed(project: Project) -> float:
    """When the driver of core was killed."""
    project.wait(lambda: targets(project) == ["up"], 60, "prometheus", "does not reach core")
    assert firing(project) == set()
    podman("kill", "--signal=KILL", project.container("driver"))
    return time.monotonic()


@pytest.fixture(scope="module")
def shop(project: Project, killed: float) -> Shop:
    """The profile cdc beside them."""
    begun = time.monotonic()
    project.up("cdc")
    _say(f"cdc is healthy after {_since(begun)}")
    return Shop(project)


def test_the_pod_of_kubernetes_joins_and_goes_on_after_a_kill(built: None) -> None:
    with played(playable(manifests.built("local"))) as pods:
        pods.wait(lambda: written_by_pod(pods) > 100, 300, "no joined rows")
        for container in ("driver", "sidecar"):
            is_guarded(pods.container(POD, container))
        for silent_s in (600, 300):  # the commands of the startup and of the liveness probe
            probe = ("python", "-m", "service.probe", "--status-dir=/var/run/rejoin")
            pods.exec(POD, "driver", *probe, f"--silent-after={silent_s}")
        before = written_by_pod(pods)
        pods.kill(POD, "driver")
        pods.wait(lambda: written_by_pod(pods) > before + 100, 300, "the next driver stands still")


@pytest.mark.parametrize("service", CORE)
def test_containers_of_core_are_guarded(project: Project, service: str) -> None:
    is_guarded(project.container(service))


def test_the_page_of_the_shop_opens(project: Project) -> None:
    opens(project.ports["PAGE"], RESULTS)


def test_topics_that_are_there_are_not_created_again(project: Project, shop: Shop) -> None:
    project.wait_done("topics")
    podman("start", project.container("topics"))
    project.wait_done("topics")


@pytest.mark.parametrize("service", CDC)
def test_containers_of_cdc_are_guarded(project: Project, shop: Shop, service: str) -> None:
    is_guarded(project.container(service))


def test_the_page_of_the_captured_tables_opens(project: Project, shop: Shop) -> None:
    opens(project.ports["CDC_PAGE"], "purchases_by_address")


def test_the_results_are_the_answers_of_postgresql(project: Project, shop: Shop) -> None:
    podman("stop", project.container("clerk"))
    shop.change(base=10_000)
    rows = shop.wait_equal()
    assert min(rows) > 3
    _say(f"{rows[0]} and {rows[1]} rows are PostgreSQL's own")
    project.wait(
        lambda: verdict(project).startswith("right"), 120, "subscriber", "is not satisfied"
    )


def test_debezium_registers_the_schemas_of_the_repository(project: Project, shop: Shop) -> None:
    url = f"http://127.0.0.1:{project.ports['REGISTRY']}/apis/ccompat/v7"
    subjects = [f"shop.public.{table}-{part}" for table in TABLES for part in ("key", "value")]
    assert list(schema_differences(url, subjects)) == []


def test_a_task_that_did_not_find_the_broker_is_started_again(project: Project, shop: Shop) -> None:
    settings = json.loads((ROOT / "deploy" / "compose" / "connector.json").read_text("utf-8"))
    settings["producer.override.bootstrap.servers"] = "late:19092"
    put = ["curl", "-sf", "-X", "PUT", "-H", "Content-Type: application/json", "-d"]
    project.exec("connect", *put, json.dumps(settings), f"{CONNECTOR}/config")
    project.wait(
        lambda: "has failed and is restarted" in project.logs("connector"),
        120, "connector", "has seen no failure",
    )  # fmt: skip
    name = f"{project.address('broker')} late"
    podman(
        "exec", "--user=0", project.container("connect"), "sh", "-c", f"echo {name} >>/etc/hosts"
    )
    project.wait_healthy("connector")
    project.restart("connector")  # the settings of the file again


def test_the_answers_stay_right_when_every_service_is_restarted(
    project: Project, shop: Shop
) -> None:
    begun = time.monotonic()
    project.wait(lambda: has_kept_offsets(project), 60, "connect", "has not kept its offsets")
    for services in RESTARTED:
        project.restart(*services)
    shop.change(base=20_000)
    _say(f"{shop.wait_equal()} rows after all restarts, {_since(begun)}")


def test_the_alert_of_a_killed_driver_fires_and_it_goes_on(
    project: Project, shop: Shop, killed: float
) -> None:
    project.wait(lambda: targets(project) == ["up", "up"], 60, "prometheus", "lacks a target")
    project.wait(
        lambda: "RejoinDriverSilent" in firing(project), 420, "prometheus", "does not fire"
    )
    _say(f"the alert fired after {_since(killed)}")
    before = shop_results(project)
    podman("start", project.container("driver"))
    project.wait_healthy("driver")
    project.wait(lambda: shop_results(project) > before, 120, "driver", "does not go on")


def test_two_workers_go_on_with_the_job_and_one_may_die(project: Project, killed: float) -> None:
    """The profile cluster on the checkpoint that the driver of core has left."""
    project.remove(*set(project.services("cdc")).difference(project.services("cluster")))
    podman("stop", "--time=60", project.container("driver"))
    begun = time.monotonic()
    project.up("cluster")
    project.wait(lambda: busy_workers(project) == 2, 120, "cluster-driver", "lacks an executor")
    before = shop_results(project)
    project.wait(lambda: shop_results(project) > before, 300, "cluster-driver", "joins nothing")
    _say(f"two workers go on after {_since(begun)}")
    podman("kill", "--signal=KILL", project.container("worker-1"))
    before = shop_results(project)
    project.wait(lambda: shop_results(project) > before + 300, 300, "cluster-driver", "stands")
    podman("start", project.container("worker-1"))
    project.wait(lambda: busy_workers(project) == 2, 120, "worker-1", "has no executor")
    for service in ("producer", "cluster-driver"):
        podman("stop", "--time=60", project.container(service))
    # of the whole life of the shop: killed and restarted services, threads, executors
    assert problems(servers(project)) == []


def is_guarded(container: str) -> None:
    assert podman("exec", container, "id", "-u").strip() == "185"
    status = podman("exec", container, "cat", "/proc/self/status")
    fields = {line.split()[0]: line.split()[1] for line in status.splitlines() if line.split()[1:]}
    assert fields["NoNewPrivs:"] == "1"
    assert int(fields["CapEff:"], 16) == int(fields["CapBnd:"], 16) == 0
    refused = podman("exec", container, "sh", "-c", "touch /opt/rejoin/x 2>&1 || true")
    assert "Read-only file system" in refused


def opens(port: int, sink: str) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed (Debian: chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER)
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"http://127.0.0.1:{port}/")
        expect(page.locator("#badge")).to_have_text("ready", timeout=60_000)
        expect(page.locator("body")).to_contain_text(sink)
        browser.close()


def has_kept_offsets(project: Project) -> bool:
    """Whether Connect would go on after the snapshot, and not read the tables again."""
    kept = json.loads(project.exec("connect", "curl", "-sf", f"{CONNECTOR}/offsets"))["offsets"]
    return any(not of["offset"].get("snapshot") for of in kept)


def verdict(project: Project) -> str:
    return project.exec("subscriber", "cat", "/tmp/verdict")  # noqa: S108


def shop_results(project: Project) -> int:
    """Records in the shop's result topic, and the ends of transactions among them."""
    return sum(ends_of(servers(project), [RESULTS]).values())


def servers(project: Project) -> str:
    return f"127.0.0.1:{project.ports['BROKER']}"


def busy_workers(project: Project) -> int:
    page = project.exec("spark-master", "python", "-c", ASK.format("8080/json/"))
    workers = json.loads(page)["workers"]
    return sum(worker["coresused"] for worker in workers if worker["state"] == "ALIVE")


def written_by_pod(pods: Played) -> int:
    page = pods.exec(POD, "sidecar", "python", "-c", ASK.format("9640/queries"))
    return sum(query["output_rows_total"] for query in json.loads(page))


def _since(begun: float) -> str:
    return f"{time.monotonic() - begun:.0f} s"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
