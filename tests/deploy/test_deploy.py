"""deploy/, the Dockerfile and docker-compose.yml, judged by the tools of their field."""

import json
import re
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import rejoin
from service.metrics import METRICS
from spark_jobs.options.spark import is_master
from spark_jobs.plan.planner import plan
from spark_jobs.settings import read_spark_properties
from spark_jobs.sql.bind.binder import bind
from tests.harness.manifests import (
    DEPLOY,
    KUBERNETES,
    ROOT,
    TOOLS,
    breaches,
    built,
    documents,
    fits_schema,
    passes,
)

NAMES = {"up"} | {
    f"{metric.name}_bucket" if metric.kind == "histogram" else metric.name for metric in METRICS
}


def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    return found


def test_dockerfile() -> None:
    passes(TOOLS / "hadolint", "Dockerfile")


def test_compose_schema() -> None:
    passes(
        TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"
    )


def test_compose_pins_and_guards_what_it_starts() -> None:
    [compose] = documents(ROOT / "docker-compose.yml")
    for name, service in compose["services"].items():
        tag = service["image"].rpartition(":")[2]
        assert re.search(r"\d", tag) or service["image"] == "rejoin:local", f"{name} is not pinned"
        assert service["profiles"], name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), f"{name} is open to the network"
        for needed in service.get("depends_on", {}).values():
            assert needed["condition"] in ("service_healthy", "service_completed_successfully")
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            assert source in compose["volumes"] or (ROOT / source).exists(), mount


def test_the_drivers_of_compose_and_their_workers_share_a_checkpoint_and_secrets() -> None:
    [compose] = documents(ROOT / "docker-compose.yml")
    services = compose["services"]
    driver, workers = services["cluster-driver"], (services["worker-1"], services["worker-2"])
    properties = read_spark_properties(DEPLOY / "compose/spark.properties")
    assert properties["spark.driver.host"] == "cluster-driver"
    assert int(properties["spark.cores.max"]) == len(workers)
    master = driver["command"][driver["command"].index("--master") + 1]
    assert is_master(master)
    for worker in workers:
        assert worker["command"][-1] == master
        assert set(worker["volumes"]) <= set(driver["volumes"])
        assert worker["environment"].items() <= driver["environment"].items()


def test_the_password_is_the_whole_file() -> None:
    """Kafka Connect's provider takes a line feed for a part of it, PostgreSQL does not."""
    text = (DEPLOY / "compose/postgres-password.txt").read_text(encoding="utf-8")
    assert text == text.strip()


@pytest.mark.parametrize("path", sorted((DEPLOY / "k8s/base").glob("[!k]*.yaml")), ids=str)
def test_kubernetes_manifests(path: Path) -> None:
    passes(TOOLS / "kubernetes-validate", "--strict", "-k", KUBERNETES, path)


def test_kubernetes_pods_are_guarded() -> None:
    [stateful] = documents(DEPLOY / "k8s/base/statefulset.yaml")
    assert stateful["spec"]["replicas"] == 1
    pod = stateful["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    mounted = {volume["name"] for volume in pod["volumes"]}
    mounted |= {claim["metadata"]["name"] for claim in stateful["spec"]["volumeClaimTemplates"]}
    for container in pod["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {"requests", "limits"} <= container["resources"].keys()
        assert {m["name"] for m in container["volumeMounts"]} <= mounted
    startup = pod["containers"][0]["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 600


@pytest.mark.parametrize("overlay", ["executors", "local", "monitoring"])
def test_overlays(overlay: str, tmp_path: Path) -> None:
    made = built(overlay)
    kinds = [document["kind"] for document in made]
    assert kinds.count("Namespace") == 1
    others = [document for document in made if document["kind"] != "Namespace"]
    assert {document["metadata"]["namespace"] for document in others} == {"rejoin"}
    known = [d for d in made if not d["apiVersion"].startswith("monitoring.coreos.com/")]
    fits_schema(known, tmp_path)
    for document in made:
        if "template" in document.get("spec", {}):
            assert breaches(document["spec"]["template"]) == []


def test_images_are_the_release_or_what_the_docs_build() -> None:
    docs = (ROOT / "docs/deployment.md").read_text(encoding="utf-8")
    assert "docker build -t rejoin:local ." in docs
    assert images("local") == {"rejoin:local", "apache/kafka:4.3.1"}
    for overlay in ("executors", "monitoring"):
        assert images(overlay) == {f"rejoin:{rejoin.__version__}"}


def images(overlay: str) -> set[str]:
    specs = [document.get("spec", {}) for document in built(overlay)]
    pods = [spec["template"]["spec"] for spec in specs if "template" in spec]
    return {container["image"] for pod in pods for container in pod["containers"]}


def test_the_operators_rules_are_those_of_prometheus(golden: Callable[[Path, str], None]) -> None:
    rules = (DEPLOY / "prometheus/rules.yml").read_text(encoding="utf-8")
    groups = rules[rules.index("groups:") :]
    head = """\
# deploy/prometheus/rules.yml for the Prometheus operator; `pytest tests/deploy --update-golden`
# writes it.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: rejoin
spec:
"""
    golden(DEPLOY / "k8s/overlays/monitoring/rules.yaml", head + textwrap.indent(groups, "  "))


def test_the_deployed_job_is_the_example_for_another_broker() -> None:
    deployed = statements(DEPLOY / "k8s/base/job.sql")
    example = statements(ROOT / "examples/shop.sql")
    assert deployed == example.replace("'localhost:9092'", "'${env:KAFKA_SERVERS}'")
    assert plan(bind(deployed, "job.sql"))


def statements(path: Path) -> str:
    """Without comments, and whatever the lines are."""
    return " ".join(re.sub(r"--.*", "", path.read_text(encoding="utf-8")).split())


def test_alerts() -> None:
    folder = DEPLOY / "prometheus"
    passes(promtool(), "check", "rules", "rules.yml", cwd=folder)
    passes(promtool(), "test", "rules", "rules_test.yml", cwd=folder)
    passes(promtool(), "check", "config", "--syntax-only", "prometheus.yml", cwd=folder)


def test_every_alert_is_tested() -> None:
    [rules] = documents(DEPLOY / "prometheus/rules.yml")
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    [tests] = documents(DEPLOY / "prometheus/rules_test.yml")
    tested = {
        case["alertname"]
        for test in tests["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    assert alerts == tested


def test_alerts_and_panels_ask_for_metrics_that_there_are() -> None:
    [rules] = documents(DEPLOY / "prometheus/rules.yml")
    asked = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    dashboard = json.loads((DEPLOY / "grafana/dashboards/rejoin.json").read_text(encoding="utf-8"))
    asked += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [v["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    for expression in asked:
        used = set(re.findall(r"\brejoin_\w+", expression))
        assert used <= NAMES, f"{used - NAMES} in {expression}"
        assert used or "up{" in expression, expression


def test_the_dashboard_finds_its_data_source() -> None:
    [sources] = documents(DEPLOY / "grafana/provisioning/datasources/prometheus.yml")
    dashboard = json.loads((DEPLOY / "grafana/dashboards/rejoin.json").read_text(encoding="utf-8"))
    [variable] = [v for v in dashboard["templating"]["list"] if v["type"] == "datasource"]
    assert variable["current"]["value"] == sources["datasources"][0]["uid"]
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
