"""deploy/k8s/overlays/executors: what several files say of one thing agrees."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_jobs.options.settings import declared_settings
from spark_jobs.options.spark import has_executors, is_master
from spark_jobs.settings import Overrides, job_settings, read_environment, read_spark_properties
from tests.harness.manifests import DEPLOY, Manifest, breaches, built, documents, fits_schema, one

FOLDER = DEPLOY / "k8s/overlays/executors"
NAME = "app.kubernetes.io/name"
# what Spark adds to a template (BasicExecutorFeatureStep), as far as a schema or a rule asks for it
MADE_BY_SPARK = {"name": "shop-exec-1", "namespace": "rejoin"}


@pytest.fixture(scope="module")
def overlay() -> list[Manifest]:
    return built("executors")


@pytest.fixture(scope="module")
def properties(overlay: list[Manifest], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """As rejoin's own checker of --spark-properties takes them, from the ConfigMap."""
    file = tmp_path_factory.mktemp("spark") / "spark.properties"
    data = one(overlay, "ConfigMap", "rejoin-spark")["data"]
    file.write_text(data["spark.properties"], encoding="utf-8")
    return read_spark_properties(file)


@pytest.fixture(scope="module")
def template(overlay: list[Manifest]) -> Manifest:
    found: Manifest = yaml.safe_load(
        one(overlay, "ConfigMap", "rejoin-spark")["data"]["executor.yaml"]
    )
    return found


@pytest.fixture(scope="module")
def stateful(overlay: list[Manifest]) -> Manifest:
    return one(overlay, "StatefulSet", "rejoin")


def driver(stateful: Manifest) -> Manifest:
    found: Manifest = stateful["spec"]["template"]["spec"]["containers"][0]
    assert found["name"] == "driver"
    return found


def variables(container: Manifest) -> dict[str, str]:
    """Names and values; of one that is filled from a field of the pod, the field."""
    return {
        v["name"]: v["value"] if "value" in v else v["valueFrom"]["fieldRef"]["fieldPath"]
        for v in container["env"]
    }


def mounts(container: Manifest) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


def volumes(pod: Manifest) -> dict[str, Manifest]:
    return {volume["name"]: volume for volume in pod["spec"]["volumes"]}


def test_the_template_is_a_pod_that_the_namespace_admits(
    template: Manifest, tmp_path: Path
) -> None:
    pod = deepcopy(template)
    pod["metadata"] |= MADE_BY_SPARK
    [container] = pod["spec"]["containers"]
    fits_schema(
        [pod | {"spec": pod["spec"] | {"containers": [{**container, "image": "i"}]}}], tmp_path
    )
    assert breaches(pod) == []
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    container["securityContext"]["capabilities"] = {}
    assert breaches(pod) == ["executor: capabilities"]


def test_the_driver_finds_master_and_files(stateful: Manifest, properties: dict[str, str]) -> None:
    given = variables(driver(stateful))
    assert is_master(given["REJOIN_MASTER"])
    assert has_executors(given["REJOIN_MASTER"])
    folder, name = given["REJOIN_SPARK_PROPERTIES"].rsplit("/", 1)
    mounted = volumes(stateful["spec"]["template"])[mounts(driver(stateful))[folder]]
    assert mounted["configMap"]["name"].startswith("rejoin-spark-")
    files = {path.name for path in FOLDER.iterdir()}
    assert name in files
    assert properties["spark.kubernetes.executor.podTemplateFile"] == f"{folder}/executor.yaml"


def test_parallelism_is_known(
    properties: dict[str, str], stateful: Manifest, tmp_path: Path
) -> None:
    """Without SET 'rejoin.parallelism', a task per core of the executors."""
    file = tmp_path / "spark.properties"
    file.write_text("".join(f"{key} {value}\n" for key, value in properties.items()))
    master = variables(driver(stateful))["REJOIN_MASTER"]
    overrides = Overrides(status_dir=tmp_path, master=master, spark_properties=file)
    settings = job_settings(declared_settings({}), "job", overrides, read_environment())
    counts = [int(properties[f"spark.executor.{word}"]) for word in ("instances", "cores")]
    assert settings.cores() == counts[0] * counts[1] == 4


def test_references_are_to_what_the_driver_has(
    properties: dict[str, str], stateful: Manifest
) -> None:
    given = variables(driver(stateful))
    used = set(re.findall(r"\$\{env:(\w+)\}", " ".join(properties.values())))
    assert used <= given.keys()
    assert given["POD_NAME"] == "metadata.name"
    assert given["POD_NAMESPACE"] == "metadata.namespace"
    assert properties["spark.kubernetes.driver.pod.name"] == "${env:POD_NAME}"
    assert properties["spark.kubernetes.namespace"] == "${env:POD_NAMESPACE}"


def test_executors_have_what_the_job_refers_to(
    properties: dict[str, str], template: Manifest, stateful: Manifest
) -> None:
    """Clients are made, and references resolved, in executors as well."""
    text = (DEPLOY / "k8s/base/job.sql").read_text(encoding="utf-8")
    for name in re.findall(r"\$\{env:(\w+)\}", text):
        assert properties[f"spark.executorEnv.{name}"] == f"${{env:{name}}}"
    where = "/run/secrets/rejoin"
    [container] = template["spec"]["containers"]
    assert f"${{file:{where}/" in text
    mine, drivers = volumes(template), volumes(stateful["spec"]["template"])
    assert mine[mounts(container)[where]] == drivers[mounts(driver(stateful))[where]]


def test_executors_run_the_drivers_image(properties: dict[str, str], stateful: Manifest) -> None:
    assert properties["spark.kubernetes.container.image"] == "${env:EXECUTOR_IMAGE}"
    assert variables(driver(stateful))["EXECUTOR_IMAGE"] == driver(stateful)["image"]


def test_the_driver_is_reached_by_its_name(
    properties: dict[str, str], stateful: Manifest, overlay: list[Manifest]
) -> None:
    service = one(overlay, "Service", stateful["spec"]["serviceName"])
    host = properties["spark.driver.host"]
    assert host == f"${{env:POD_NAME}}.{service['metadata']['name']}"
    assert service["spec"]["clusterIP"] == "None"
    # executors come before the job is ready
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert properties["spark.kubernetes.driver.service.publishNotReadyAddresses"] == "true"
    offered = {p["port"]: p["targetPort"] for p in service["spec"]["ports"]}
    listening = {p["name"]: p["containerPort"] for p in driver(stateful)["ports"]}
    for key in ("spark.driver.port", "spark.blockManager.port"):
        assert listening[offered[int(properties[key])]] == int(properties[key])
    assert properties["spark.port.maxRetries"] == "0"


def test_no_service_or_set_takes_an_executor_for_the_driver(
    overlay: list[Manifest], template: Manifest
) -> None:
    labels = template["metadata"]["labels"].items()
    for document in overlay:
        selector = document.get("spec", {}).get("selector")
        if document["kind"] in ("Service", "StatefulSet", "PodDisruptionBudget"):
            wanted = selector.get("matchLabels", selector)
            assert not wanted.items() <= labels, document["metadata"]["name"]


def test_checkpoint_is_the_drivers_and_may_be_shared(
    template: Manifest, stateful: Manifest
) -> None:
    [claim] = stateful["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    [container] = template["spec"]["containers"]
    found = volumes(template)[claim["metadata"]["name"]]["persistentVolumeClaim"]["claimName"]
    assert found == f"{claim['metadata']['name']}-{stateful['metadata']['name']}-0"
    [checkpoint] = [a for a in driver(stateful)["args"] if a.startswith("--checkpoint=")]
    [place] = [path for path, name in mounts(driver(stateful)).items() if name == "checkpoint"]
    assert checkpoint.removeprefix("--checkpoint=").startswith(f"{place}/")
    assert mounts(container)[place] == "checkpoint"


def test_spark_takes_the_templates_folder_for_local_files(template: Manifest) -> None:
    """It looks for this prefix, and else mounts a volume of its own at the same path."""
    [container] = template["spec"]["containers"]
    image = (DEPLOY.parent / "Dockerfile").read_text(encoding="utf-8")
    [folder] = re.findall(r"SPARK_LOCAL_DIRS=(\S+)", image)
    name = mounts(container)[folder]
    assert name.startswith("spark-local-dir-")
    assert volumes(template)[name]["emptyDir"]["sizeLimit"]
    # the image's is the checkpoint's, which all pods share
    assert container["workingDir"] == folder


def test_the_command_is_there(template: Manifest, properties: dict[str, str]) -> None:
    [container] = template["spec"]["containers"]
    assert container["name"] == properties["spark.kubernetes.executor.podTemplateContainerName"]
    assert container["command"][:-1] == ["tini", "--", "python", "-m"]
    module = DEPLOY.parent / (container["command"][-1].replace(".", "/") + ".py")
    assert module.is_file()
    assert "args" not in container  # Spark gives them


def test_the_driver_may_make_and_remove_pods_and_nothing_else(
    overlay: list[Manifest], stateful: Manifest, template: Manifest, properties: dict[str, str]
) -> None:
    [role] = [d for d in overlay if d["kind"] in ("Role", "ClusterRole")]
    [rule] = role["rules"]
    assert (rule["apiGroups"], rule["resources"]) == ([""], ["pods"])
    assert "*" not in rule["verbs"]
    binding = one(overlay, "RoleBinding", role["metadata"]["name"])
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    pod = stateful["spec"]["template"]["spec"]
    [subject] = binding["subjects"]
    assert (subject["kind"], subject["name"]) == ("ServiceAccount", pod["serviceAccountName"])
    own = template["spec"]["serviceAccountName"]
    assert own != pod["serviceAccountName"]
    accounts = [d for d in overlay if d["kind"] == "ServiceAccount"]
    assert {a["metadata"]["name"] for a in accounts} == {own, pod["serviceAccountName"]}
    assert template["spec"]["automountServiceAccountToken"] is False
    # what Spark would make or remove beside pods
    assert properties["spark.kubernetes.executor.disableConfigMap"] == "true"
    assert properties["spark.kubernetes.driver.service.deleteOnTermination"] == "false"
    assert properties["spark.kubernetes.driver.ownPersistentVolumeClaim"] == "false"


def test_the_driver_alone_has_a_token(stateful: Manifest) -> None:
    pod = stateful["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    tokens = [
        name
        for name, volume in volumes(stateful["spec"]["template"]).items()
        if any("serviceAccountToken" in s for s in volume.get("projected", {}).get("sources", ()))
    ]
    [token] = tokens
    holders = [c["name"] for c in pod["containers"] if token in mounts(c).values()]
    assert holders == ["driver"]
    assert mounts(driver(stateful))["/var/run/secrets/kubernetes.io/serviceaccount"] == token


def lets(overlay: list[Manifest], direction: str, of: str, other: str, port: int) -> bool:
    """Whether the policies of pods named `of` let them talk with pods named `other`."""
    side = "from" if direction == "ingress" else "to"
    for policy in (d for d in overlay if d["kind"] == "NetworkPolicy"):
        if policy["spec"]["podSelector"]["matchLabels"] != {NAME: of}:
            continue
        for rule in policy["spec"][direction]:
            selectors = [p.get("podSelector", {}).get("matchLabels") for p in rule.get(side, ())]
            ports = [p["port"] for p in rule.get("ports", ())]
            if {NAME: other} in selectors and (not ports or port in ports):
                return True
    return False


@pytest.mark.parametrize(
    ("client", "server", "key"),
    [
        ("executor", "driver", "spark.driver.port"),
        ("executor", "driver", "spark.blockManager.port"),
        ("driver", "executor", "spark.blockManager.port"),
        ("executor", "executor", "spark.blockManager.port"),
    ],
)
def test_driver_and_executors_reach_each_other(
    overlay: list[Manifest],
    stateful: Manifest,
    template: Manifest,
    properties: dict[str, str],
    client: str,
    server: str,
    key: str,
) -> None:
    names = {
        "driver": stateful["spec"]["template"]["metadata"]["labels"][NAME],
        "executor": template["metadata"]["labels"][NAME],
    }
    port = int(properties[key])
    assert lets(overlay, "egress", names[client], names[server], port)
    assert lets(overlay, "ingress", names[server], names[client], port)
    assert not lets(overlay, "ingress", "rejoin", "rejoin-executor", 9640)


def outside(policies: list[Manifest], of: str) -> set[str]:
    """Egress rules of pods with this name that lead to no pod of rejoin's."""
    return {
        yaml.safe_dump(rule)
        for policy in policies
        if policy["spec"]["podSelector"]["matchLabels"] == {NAME: of}
        for rule in policy["spec"]["egress"]
        if not any("podSelector" in peer for peer in rule.get("to", ()))
    }


def test_executors_reach_what_the_driver_reaches_but_the_api_server(
    overlay: list[Manifest],
) -> None:
    policies = [d for d in overlay if d["kind"] == "NetworkPolicy"]
    more = outside(policies, "rejoin") - outside(policies, "rejoin-executor")
    [api] = [yaml.safe_load(rule) for rule in more]
    assert {p["port"] for p in api["ports"]} == {443, 6443}
    assert outside(policies, "rejoin-executor") < outside(policies, "rejoin")


def test_the_brokers_port_is_let_out(overlay: list[Manifest], stateful: Manifest) -> None:
    """In base as well: the address that the job is given belongs to a rule."""
    host, port = variables(driver(stateful))["KAFKA_SERVERS"].split(":")
    namespace = host.split(".")[1]
    wanted: dict[str, Any] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    for policy in (*overlay, *documents(DEPLOY / "k8s/base/networkpolicy.yaml")):
        if policy["kind"] != "NetworkPolicy" or policy["metadata"]["name"] == "rejoin-driver":
            continue
        [rule] = [
            r for r in policy["spec"]["egress"] if {"namespaceSelector": wanted} in r.get("to", ())
        ]
        assert int(port) in {p["port"] for p in rule["ports"]}, policy["metadata"]["name"]
