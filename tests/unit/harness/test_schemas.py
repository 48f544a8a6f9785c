"""Each file of schemas/ is a subject that the demo, docker-compose or the end-to-end run has.

That it is what a registry gets: tests/unit/demo for the demo, tests/long/test_e2e.py for the
change events, which Debezium itself registers.
"""

import json
from pathlib import Path

import fastavro
import pytest

from tests.e2e.debezium import TABLES, topic_of
from tests.harness.schemas import DEMO_SUBJECTS, SCHEMAS

COMPOSE = Path(__file__).parents[3] / "deploy" / "compose"


def test_no_file_is_missing_and_none_is_left_over() -> None:
    connector = json.loads((COMPOSE / "connector.json").read_text(encoding="utf-8"))
    captured = connector["table.include.list"].split(",")
    topics = [f"{connector['topic.prefix']}.{table}" for table in captured]
    topics += [topic_of(table) for table in TABLES]
    wanted = {f"{topic}-{part}" for topic in topics for part in ("key", "value")}
    assert {path.stem for path in SCHEMAS.glob("*.avsc")} == wanted | DEMO_SUBJECTS


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.avsc")), ids=lambda path: path.stem)
def test_each_is_avro(path: Path) -> None:
    fastavro.parse_schema(json.loads(path.read_text(encoding="utf-8")))
