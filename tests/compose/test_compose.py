"""Every profile of docker-compose.yml on the image of the Dockerfile, as a user would see it."""

import shutil
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

from tests.compose.podman import podman
from tests.compose.project import Project
from tests.compose.shop import Shop
from tests.harness.schemas import schema_differences

pytestmark = pytest.mark.timeout(2400)

OURS = ("driver", "sidecar", "producer", "cdc-driver", "cdc-sidecar", "subscriber")
TABLES = ("customers", "purchases", "payments")
BROWSER = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def project(built: None) -> Iterator[Project]:
    """All profiles, up and healthy; nothing of it is left, however the tests end."""
    project = Project()
    begun = time.monotonic()
    try:
        project.up("core", "cdc", "observability")
        _say(f"all healthy after {_since(begun)}")
        yield project
    finally:
        project.down()
    assert project.left() == []


@pytest.fixture(scope="module")
def shop(project: Project) -> Shop:
    return Shop(project)


def test_one_shot_services_have_done_their_work(project: Project) -> None:
    for service in ("topics", "connector"):
        project.wait_done(service)
        podman("start", project.container(service))  # the same again changes nothing
        project.wait_done(service)


@pytest.mark.parametrize("service", OURS)
def test_containers_are_guarded(project: Project, service: str) -> None:
    assert project.exec(service, "id", "-u").strip() == "185"
    status = project.exec(service, "cat", "/proc/self/status")
    capabilities = {
        line.split()[0]: line.split()[1] for line in status.splitlines() if "Cap" in line
    }
    assert int(capabilities["CapEff:"], 16) == int(capabilities["CapBnd:"], 16) == 0
    assert "NoNewPrivs:\t1" in status
    refused = project.exec(service, "sh", "-c", "touch /opt/rejoin/x 2>&1 || true")
    assert "Read-only file system" in refused


def test_the_results_are_the_answers_of_postgresql(project: Project, shop: Shop) -> None:
    podman("stop", project.container("clerk"))
    shop.change(base=10_000)
    rows = shop.wait_equal()
    assert min(rows) > 3
    _say(f"{rows[0]} and {rows[1]} rows are PostgreSQL's own")
    project.wait(
        lambda: verdict(project).startswith("right"), 120, "subscriber", "is not satisfied"
    )


def test_debezium_registers_the_schemas_of_the_repository(project: Project) -> None:
    url = f"http://127.0.0.1:{project.ports['REGISTRY']}/apis/ccompat/v7"
    subjects = [f"shop.public.{table}-{part}" for table in TABLES for part in ("key", "value")]
    assert list(schema_differences(url, subjects)) == []


@pytest.mark.parametrize(
    ("port", "sink"), [("PAGE", "enriched_orders"), ("CDC_PAGE", "purchases_by_address")]
)
def test_the_page_of_each_job_opens(project: Project, port: str, sink: str) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed (Debian: chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER)
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"http://127.0.0.1:{project.ports[port]}/")
        expect(page.locator("#badge")).to_have_text("ready", timeout=60_000)
        expect(page.locator("body")).to_contain_text(sink)
        browser.close()


def test_alerts_fire_when_a_driver_is_killed_and_every_service_survives_a_restart(
    project: Project, shop: Shop
) -> None:
    project.wait(lambda: targets(project) == ["up", "up"], 60, "prometheus", "lacks a target")
    assert firing(project) == set()
    pid = project.inspect("driver")["State"]["Pid"]
    podman("kill", "--signal=KILL", project.container("driver"))
    killed = time.monotonic()
    for service in ("broker", "registry", "postgres", "connect", "cdc-driver", "cdc-sidecar"):
        project.restart(service)
    for service in ("subscriber", "sidecar", "producer", "prometheus"):
        project.restart(service)
    shop.change(base=20_000)
    _say(f"{shop.wait_equal()} rows after all restarts")
    assert project.inspect("driver")["State"]["Pid"] != pid
    project.wait(
        lambda: "RejoinDriverSilent" in firing(project), 420, "prometheus", "does not fire"
    )
    _say(f"the alert fired after {_since(killed)}")
    podman("start", project.container("driver"))
    project.wait_healthy("driver")


def verdict(project: Project) -> str:
    return project.exec("subscriber", "cat", "/tmp/verdict")  # noqa: S108


def targets(project: Project) -> list[str]:
    found = _ask_prometheus(project, "targets")["activeTargets"]
    return [target["health"] for target in found]


def firing(project: Project) -> set[str]:
    found = _ask_prometheus(project, "alerts")["alerts"]
    return {alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"}


def _ask_prometheus(project: Project, what: str) -> dict[str, list[dict[str, Any]]]:
    url = f"http://127.0.0.1:{project.ports['PROMETHEUS']}/api/v1/{what}"
    answer = httpx.get(url).raise_for_status().json()
    data: dict[str, list[dict[str, Any]]] = answer["data"]
    return data


def _since(begun: float) -> str:
    return f"{time.monotonic() - begun:.0f} s"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
