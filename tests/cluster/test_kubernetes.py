"""Executors as pods: Spark's own scheduler for Kubernetes, with the overlay's files.

The API server and the kubelet are the tests' own; pods are processes. All else is what a cluster
runs: the ConfigMap's properties and template, the Role's rights, the executors' command.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_jobs.embedded.process import LOOPBACK, Child, free_ports
from spark_jobs.options.spark import parse_properties
from tests.harness.kube_api import ApiServer, Pods, api_server
from tests.harness.kubelet import Kubelet, image_variables, kubelet
from tests.harness.manifests import Manifest, breaches, built, fits_schema, one
from tests.harness.shop import Shop, orders, paid, payments, payments_job, wait_until, written

SMALL_EPOCHS = "SET 'rejoin.max-offsets-per-trigger' = '100';\n"
ROLE_LABEL = "spark-role"
NAME = "app.kubernetes.io/name"


@dataclass
class Namespace:
    """What the overlay makes of a cluster's namespace, with the driver's pod in it."""

    manifests: list[Manifest]
    pods: Pods
    api: ApiServer
    kubelet: Kubelet
    options: tuple[str, ...]
    driver: Manifest

    def executors(self, phase: str) -> list[str]:
        def matches(pod: Manifest) -> bool:
            role = pod["metadata"]["labels"].get(ROLE_LABEL)
            return (role, pod["status"]["phase"]) == ("executor", phase)

        return [pod["metadata"]["name"] for pod in self.pods.select(matches)[0]]

    def log_tail(self, driver: Child) -> str:
        refused = "\n".join(self.api.refused)
        return f"{driver.log_tail(40)}\nrefused: {refused}\n{self.kubelet.log_tail()}"


@pytest.fixture
def namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Namespace]:
    manifests = built("executors")
    stateful = one(manifests, "StatefulSet", "rejoin")
    pods = Pods("rejoin")
    driver = driver_pod(pods, stateful)
    variables = {"POD_NAME": driver["metadata"]["name"], "POD_NAMESPACE": pods.namespace}
    for name, value in (*variables.items(), ("EXECUTOR_IMAGE", image_of(stateful))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KAFKA_SERVERS", "of the job's own")
    home = tmp_path / "kubelet"
    home.mkdir()
    role = one(manifests, "Role", "rejoin-driver")
    with (
        api_server(pods, role) as (api, address),
        kubelet(pods, home, image_variables()) as running,
    ):
        file = local_properties(one(manifests, "ConfigMap", "rejoin-spark"), tmp_path)
        options = ("--no-sidecar", "--master", f"k8s://{address}", "--spark-properties", str(file))
        yield Namespace(manifests, pods, api, running, options, driver)


def driver_pod(pods: Pods, stateful: Manifest) -> Manifest:
    """As the controller of StatefulSets makes it; it is running, and not ready yet."""
    pod = deepcopy(stateful["spec"]["template"])
    pod |= {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"]["name"] = f"{stateful['metadata']['name']}-0"
    made = pods.create(pod)
    conditions = [{"type": "Ready", "status": "False"}]
    pods.set_status(pod["metadata"]["name"], {"phase": "Running", "conditions": conditions})
    return made


def image_of(stateful: Manifest) -> str:
    return str(stateful["spec"]["template"]["spec"]["containers"][0]["image"])


def local_properties(config: Manifest, folder: Path) -> Path:
    """The ConfigMap's, but for addresses, paths and sizes of a cluster."""
    template = folder / "executor.yaml"
    template.write_text(config["data"]["executor.yaml"], encoding="utf-8")
    given, _ = parse_properties(config["data"]["spark.properties"])
    driver_port, block_manager_port = free_ports(2)
    here = {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.port": str(driver_port),
        "spark.blockManager.port": str(block_manager_port),
        "spark.kubernetes.executor.podTemplateFile": str(template),
        "spark.executor.cores": "1",
        "spark.executor.memory": "1g",
    }
    assert here.keys() <= given.keys()
    file = folder / "spark.properties"
    file.write_text("".join(f"{key} {value}\n" for key, value in (given | here).items()))
    return file


@pytest.mark.timeout(1800)
def test_executors_are_pods_and_killed_ones_are_replaced(
    shop: Shop, namespace: Namespace, tmp_path: Path
) -> None:
    shop.create("orders", "payments", "paid_sink")
    shop.send("orders", orders(0, 300))
    shop.send("payments", payments(0, 300))
    sql = SMALL_EPOCHS + payments_job(shop, bounded=False)
    child = shop.start(sql, *namespace.options)
    try:
        wait_until(lambda: written(shop) >= paid(0, 300).total(), child, shop.within_s)
    except AssertionError as problem:
        raise AssertionError(f"{problem}\n{namespace.log_tail(child)}") from None
    first, second = namespace.executors("Running")
    namespace.kubelet.kill(first)
    shop.send("orders", orders(300, 600))
    shop.send("payments", payments(300, 600))
    everything = paid(0, 600)
    wait_until(lambda: written(shop) >= everything.total(), child, shop.within_s)
    wait_until(lambda: len(namespace.executors("Running")) == 2, child, shop.within_s)
    assert second in namespace.executors("Running")
    assert first not in namespace.executors("Running")
    assert shop.rows("paid_sink", everything.total()) == everything
    # twice a minute Spark asks for all pods, whatever it was told of them
    wait_until(lambda: "list" in namespace.api.verbs, child, shop.within_s)
    # the driver ends in good order, and takes its pods along
    child.stop(60.0)
    assert child.exit_code == 0, namespace.log_tail(child)
    left = namespace.pods.select(lambda pod: ROLE_LABEL in pod["metadata"]["labels"])[0]
    assert all("deletionTimestamp" in pod["metadata"] for pod in left)
    log = (shop.folder / "status" / "driver.log").read_text(encoding="utf-8")
    assert "Timed out waiting" not in log  # for a driver that is ready
    # with the rights of the Role alone, and all of them
    assert namespace.api.refused == []
    [rule] = one(namespace.manifests, "Role", "rejoin-driver")["rules"]
    assert namespace.api.verbs == set(rule["verbs"])
    pods = [pod for pod in namespace.pods.created if ROLE_LABEL in pod["metadata"]["labels"]]
    assert len(pods) == 3
    for pod in pods:
        is_as_the_overlay_wants(pod, namespace)
    fits_schema(pods, tmp_path)
    # each has the driver's jars in a folder of its own
    assert len(list((tmp_path / "kubelet").glob("*/spark-local-dir-1/rejoin-kernel.jar"))) == 3


def is_as_the_overlay_wants(pod: Manifest, namespace: Namespace) -> None:
    """What Spark made of the template."""
    assert breaches(pod) == []
    [owner] = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", namespace.driver["metadata"]["uid"])
    [container] = pod["spec"]["containers"]
    assert container["args"] == ["executor"]
    assert container["image"] == image_of(one(namespace.manifests, "StatefulSet", "rejoin"))
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert len(set(mounted)) == len(mounted), mounted
    assert pod["spec"]["serviceAccountName"] == "rejoin-executor"
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["metadata"]["labels"][NAME] == "rejoin-executor"
    assert "configMap" not in str(pod["spec"]["volumes"])
