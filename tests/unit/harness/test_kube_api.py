"""The API server and the kubelet of the tests do what Spark takes from Kubernetes."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.kube_api import ApiServer, Pods, api_server
from tests.harness.kubelet import Kubelet, kubelet
from tests.harness.manifests import Manifest

pytestmark = pytest.mark.service  # it takes long

ROLE = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [
    "create", "get", "list", "watch", "delete", "deletecollection",
]}]}  # fmt: skip
SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(name: str, command: str = "sleep 60", **labels: str) -> Manifest:
    container = {
        "name": "one",
        "image": "i",
        "command": ["tini", "--", "sh", "-c", command],
        "env": [
            {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "FOLDER", "value": "/scratch"},
        ],
        "workingDir": "/scratch",
        "volumeMounts": [{"name": "s", "mountPath": "/scratch"}],
        "securityContext": SAFE,
    }
    spec = {"containers": [container], "volumes": [{"name": "s", "emptyDir": {}}]}
    return {"kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture
def pods() -> Pods:
    return Pods("jobs")


@pytest.fixture
def server(pods: Pods) -> Iterator[tuple[ApiServer, httpx.Client]]:
    with api_server(pods, ROLE) as (server, address):
        client = httpx.Client(base_url=f"{address}/api/v1/namespaces/jobs", timeout=20.0)
        with client:
            yield server, client


@pytest.fixture
def runner(pods: Pods, tmp_path: Path) -> Iterator[Kubelet]:
    with kubelet(pods, tmp_path, {"PATH": "/usr/bin:/bin"}) as running:
        yield running


def names(client: httpx.Client, **selectors: str) -> list[str]:
    answer = client.get("/pods", params=selectors)
    assert answer.status_code == 200, answer.text
    return [item["metadata"]["name"] for item in answer.json()["items"]]


def wait_for_phase(pods: Pods, name: str, phase: str) -> Manifest:
    deadline = time.monotonic() + 20
    while (found := pods.get(name))["status"]["phase"] != phase:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found


def test_selectors(server: tuple[ApiServer, httpx.Client]) -> None:
    _, client = server
    client.post("/pods", json=pod("a", role="executor", app="x")).raise_for_status()
    client.post("/pods", json=pod("b", role="executor", app="x", off="true")).raise_for_status()
    client.post("/pods", json=pod("c", role="driver", app="x")).raise_for_status()
    assert names(client, labelSelector="role=executor,app=x") == ["a", "b"]
    assert names(client, labelSelector="role=executor,off!=true") == ["a"]
    assert names(client, labelSelector="role in (driver,other),app") == ["c"]
    assert names(client, labelSelector="role notin (driver)") == ["a", "b"]
    assert names(client, fieldSelector="metadata.name=b") == ["b"]
    assert names(client, fieldSelector="status.phase=Running") == []
    assert client.get("/pods", params={"labelSelector": "a b"}).status_code == 400


def test_what_no_right_covers_is_refused(server: tuple[ApiServer, httpx.Client]) -> None:
    api, client = server
    assert client.post("/pods", json=pod("a")).status_code == 200
    assert client.get("/pods/a").json()["metadata"]["uid"]
    assert client.post("/pods", json=pod("a")).status_code == 409
    assert client.get("/pods/b").status_code == 404
    assert (api.verbs, api.refused) == ({"create", "get"}, [])
    answers = [client.get("/configmaps"), client.patch("/pods/a", json={})]
    answers.append(client.get("/api/v1/namespaces/other/pods"))
    assert {answer.status_code for answer in answers} <= {403, 404}
    assert len(api.refused) == 3


def test_a_pod_that_the_standard_forbids_is_refused(
    server: tuple[ApiServer, httpx.Client],
) -> None:
    _, client = server
    bad = pod("a")
    bad["spec"]["containers"][0]["securityContext"] = {**SAFE, "capabilities": {}}
    answer = client.post("/pods", json=bad)
    assert (answer.status_code, "capabilities" in answer.text) == (403, True)


def test_web_sockets_are_declined_and_watches_tell_what_happens(
    server: tuple[ApiServer, httpx.Client], pods: Pods
) -> None:
    _, client = server
    upgrade = client.get("/pods", params={"watch": "true"}, headers={"Upgrade": "websocket"})
    assert upgrade.status_code == 200
    pods.create(pod("a", role="x"))
    options = {"watch": "true", "labelSelector": "role=x", "timeoutSeconds": "2"}
    told: list[tuple[str, str]] = []
    with client.stream("GET", "/pods", params=options) as stream:
        for line in stream.iter_lines():
            event: dict[str, Any] = json.loads(line)
            told.append((event["type"], event["object"]["metadata"]["name"]))
            if len(told) == 1:
                pods.create(pod("b", role="y"))
                pods.create(pod("c", role="x"))
                pods.set_status("a", {"phase": "Running"})
                pods.remove("a")
    assert told == [("ADDED", "a"), ("ADDED", "c"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_containers_run_and_their_end_is_told(runner: Kubelet, pods: Pods, tmp_path: Path) -> None:
    pods.create(pod("good", "echo $WHO at $WHERE; touch $FOLDER/made made-too"))
    pods.create(pod("bad", "exit 3"))
    wait_for_phase(pods, "good", "Succeeded")
    assert (tmp_path / "good/log").read_text().split() == ["good", "at", "127.0.0.2"]
    assert {path.name for path in (tmp_path / "good/s").iterdir()} == {"made", "made-too"}
    status = wait_for_phase(pods, "bad", "Failed")["status"]["containerStatuses"][0]
    assert status["state"]["terminated"]["exitCode"] == 3


def test_killed_and_deleted_containers(
    server: tuple[ApiServer, httpx.Client], runner: Kubelet, pods: Pods
) -> None:
    _, client = server
    for name in ("a", "b"):
        pods.create(pod(name, "exec sleep 60", role="x"))
        wait_for_phase(pods, name, "Running")
    runner.kill("a")
    found = wait_for_phase(pods, "a", "Failed")["status"]["containerStatuses"][0]
    assert found["state"]["terminated"]["exitCode"] == 137
    client.delete("/pods", params={"labelSelector": "role=x"}).raise_for_status()
    deadline = time.monotonic() + 20
    while names(client):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert runner.running == {}
