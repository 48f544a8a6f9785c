"""What the Prometheus of docker-compose.yml knows: targets, and alerts that fire."""

from typing import Any

import httpx

from tests.compose.project import Project


def targets(project: Project) -> list[str]:
    """The health of each sidecar, as it was seen at the last scrape."""
    return [target["health"] for target in _ask(project, "targets")["activeTargets"]]


def firing(project: Project) -> set[str]:
    found = _ask(project, "alerts")["alerts"]
    return {alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"}


def _ask(project: Project, what: str) -> dict[str, list[dict[str, Any]]]:
    url = f"http://127.0.0.1:{project.ports['PROMETHEUS']}/api/v1/{what}"
    data: dict[str, list[dict[str, Any]]] = httpx.get(url).raise_for_status().json()["data"]
    return data
