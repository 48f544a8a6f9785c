"""Every address against its own OpenAPI document, whatever the status folder holds."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from service import admin
from service.main import create_app
from service.settings import Settings
from spark_jobs.job_record import JOB_FILE
from spark_jobs.status import STATUS_FILE, JobStatus

pytestmark = pytest.mark.service  # it takes long

TOKEN = "correct horse"  # noqa: S105
GOOD = {"Authorization": f"Bearer {TOKEN}"}
Job = Callable[..., JobStatus]


def hostile(text: str) -> str:
    """Numbers at their ends, times that are none of ours, names that want to be something else."""
    name = '\\u0000</script>\\"}\\n# HELP x\\u202e' + "y" * 500
    return (
        text.replace('"shop.orders"', f'"{name}"')
        .replace('"offset":5', f'"offset":{-(2**63)}')
        .replace('"latest_offset":9', f'"latest_offset":{2**63 - 1}')
        .replace('"rows":7', f'"rows":{-(2**63)}')
        .replace('"watermark_ms":1704067200000', f'"watermark_ms":{2**63 - 1}')
        .replace('"input_rows_per_second":0.0', '"input_rows_per_second":-Infinity')
        .replace('"processed_rows_per_second":0.0', '"processed_rows_per_second":NaN')
    )


def files(state: str, good: str, old: str) -> dict[str, bytes]:
    job = b'{"version":1,"job":"shop","queries":[{"name":"enriched","nodes":[],"edges":[],"plan":'
    match state:
        case "good":
            return {STATUS_FILE: good.encode(), JOB_FILE: job + b"{}}]}"}
        case "half":
            return {STATUS_FILE: good[: len(good) // 2].encode(), JOB_FILE: job}
        case "old":
            return {STATUS_FILE: old.encode()}
        case "hostile":
            deep = b'{"a":[' + b"[" * 100 + b"1e999,NaN" + b"]" * 100 + b"]}}]}"
            return {STATUS_FILE: hostile(good).encode(), JOB_FILE: job + deep}
        case _:
            return {}


@pytest.fixture
def app(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(admin, "PER_MINUTE", 10**9)
    monkeypatch.setattr(admin, "MOST_WAIT_S", 0)
    (tmp_path / "token").write_text(TOKEN)
    folder.mkdir()
    return create_app(Settings(status_dir=folder, token_file=tmp_path / "token", sample_rows=3))


@pytest.mark.parametrize("state", ["missing", "half", "old", "hostile", "good"])
def test_answers_are_as_described(app: Any, folder: Path, job: Job, state: str) -> None:
    old = job(updated_at=datetime.now(UTC) - timedelta(days=400))
    written = files(state, job().model_dump_json(), old.model_dump_json())
    for name, data in written.items():
        (folder / name).write_bytes(data)
    asked = fuzz(app, GOOD, 10 if state == "good" else 2)
    assert len(asked) == 18
    has_job = TestClient(app).get("/status").json()["status"] is not None
    assert has_job == (state in ("good", "old", "hostile"))


def test_no_verb_without_the_token(app: Any, folder: Path) -> None:
    answers = {code for path, code in fuzz(app, {}, 5).items() if path.startswith("/admin")}
    assert answers == {401}
    assert not (folder / "commands").exists()


def fuzz(app: Any, headers: dict[str, str], examples: int) -> dict[str, int]:
    """The last code that each address answered with; an answer that no document foresees raises."""
    codes: dict[str, int] = {}
    for operation in schemathesis.openapi.from_asgi("/openapi.json", app).get_all_operations():

        @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.ok().as_strategy())
        def ask(case: Any) -> None:
            answered = case.call_and_validate(
                # 503 is foreseen where it may come; other failures of the server are nowhere
                headers=headers, excluded_checks=[not_a_server_error]
            )  # fmt: skip
            codes[case.operation.path] = answered.status_code

        ask()
    return codes


def test_every_answer_has_an_example_that_fits(app: Any) -> None:
    document = app.openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                for kind, content in answer["content"].items():
                    place = f"{method} {path} {status} {kind}"
                    if status == "422":
                        continue  # FastAPI's own
                    example = content.get("example") or field_examples(document, content["schema"])
                    assert example, place
                    schema = {**content["schema"], "components": document["components"]}
                    jsonschema_rs.validate(schema, example)


def field_examples(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Of an answer whose fields have examples of their own."""
    named = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    fields = named["properties"].items()
    return {n: f["examples"][0] for n, f in fields if "examples" in f}
