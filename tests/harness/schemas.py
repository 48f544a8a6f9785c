"""What registries hold, against the files of `schemas/`."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx

SCHEMAS = Path(__file__).parents[2] / "schemas"
DEMO_SUBJECTS = {"orders-value", "products-key", "products-value", "enriched_orders-value"}


def schema_differences(registry_url: str, subjects: Iterable[str]) -> Iterator[str]:
    """The subjects whose first version is not the schema in their file."""
    for subject in subjects:
        path = SCHEMAS / f"{subject}.avsc"
        wanted = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        answer = httpx.get(f"{registry_url}/subjects/{subject}/versions/1").raise_for_status()
        found = answer.json()["schema"]
        if json.loads(found) != wanted:
            yield f"schemas/{path.name} differs from what is registered: {found}"
