"""The embedded registry: Confluent's answers, and what it keeps on disk."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from spark_jobs.embedded.process import free_ports, port_answers
from spark_jobs.embedded.registry import RegistryServer, create_app
from spark_jobs.embedded.schema_store import SchemaStore
from spark_jobs.errors import ConfigError

ROOT = Path(__file__).parents[3]
REQUIRED = {"name": "a", "type": "int"}
OPTIONAL = {"name": "b", "type": ["null", "string"], "default": None}


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def body(schema: Any, **more: Any) -> dict[str, Any]:
    return {"schema": json.dumps(schema), **more}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    """The application without a socket; the tests of restarts have a server."""
    with TestClient(create_app(SchemaStore(tmp_path))) as http:
        yield http


def register(client: httpx.Client, subject: str, schema: Any, **more: Any) -> int:
    answer = client.post(f"/subjects/{subject}/versions", json=body(schema, **more))
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def refusal(answer: httpx.Response) -> tuple[int, int]:
    assert answer.json()["message"]
    return answer.status_code, answer.json()["error_code"]


def test_one_id_per_schema_and_versions_per_subject(client: httpx.Client) -> None:
    assert register(client, "orders-value", record(REQUIRED)) == 1
    assert register(client, "orders-value", record(REQUIRED, OPTIONAL)) == 2
    assert register(client, "orders-value", record(REQUIRED)) == 1
    assert register(client, "copies-value", record(REQUIRED)) == 1
    assert client.get("/subjects").json() == ["copies-value", "orders-value"]
    assert client.get("/subjects?subjectPrefix=ord").json() == ["orders-value"]
    assert client.get("/subjects/orders-value/versions").json() == [1, 2]
    latest = client.get("/subjects/orders-value/versions/latest").json()
    assert (latest["version"], latest["id"]) == (2, 2)
    assert json.loads(latest["schema"]) == record(REQUIRED, OPTIONAL)
    assert client.get("/subjects/orders-value/versions/-1").json() == latest
    assert client.get("/subjects/orders-value/versions/1/schema").json() == record(REQUIRED)
    assert client.get("/schemas/ids/1/subjects").json() == ["orders-value", "copies-value"]
    assert client.get("/schemas/ids/2/versions").json() == [
        {"subject": "orders-value", "version": 2}
    ]


def test_schema_by_id_and_media_type(client: httpx.Client) -> None:
    register(client, "t-value", "string")
    answer = client.get("/schemas/ids/1")
    assert answer.json() == {"schema": '"string"'}
    assert answer.headers["content-type"].startswith("application/vnd.schemaregistry.v1+json")
    sent = client.post(
        "/subjects/t-key/versions",
        content=json.dumps(body("long")),
        headers={"content-type": "application/vnd.schemaregistry.v1+json"},
    )
    assert sent.json() == {"id": 2}


def test_lookup_finds_only_what_is_registered(client: httpx.Client) -> None:
    register(client, "t-value", record(REQUIRED))
    found = client.post("/subjects/t-value", json=body(record(REQUIRED))).json()
    assert (found["subject"], found["id"], found["version"]) == ("t-value", 1, 1)
    unknown = client.post("/subjects/t-value", json=body(record(OPTIONAL)))
    assert refusal(unknown) == (404, 40403)
    assert refusal(client.post("/subjects/no", json=body(record(REQUIRED)))) == (404, 40401)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/schemas/ids/9", (404, 40403)),
        ("/schemas/ids/nine", (422, 422)),
        ("/subjects/no/versions", (404, 40401)),
        ("/subjects/t-value/versions/9", (404, 40402)),
        ("/subjects/t-value/versions/0", (422, 42202)),
        ("/subjects/t-value/versions/first", (422, 42202)),
        ("/config/t-value", (404, 40408)),
        ("/nowhere", (404, 404)),
    ],
)
def test_errors_have_confluents_codes(
    client: httpx.Client, path: str, expected: tuple[int, int]
) -> None:
    register(client, "t-value", record(REQUIRED))
    assert refusal(client.get(path)) == expected


@pytest.mark.parametrize(
    "sent",
    [
        {"schema": "{"},
        {"schema": '{"type": "record"}'},
        {"schema": '"no.such.Type"'},
        {"schema": '{"type": "string"}', "schemaType": "PROTOBUF"},
    ],
)
def test_bad_schemas_are_refused(client: httpx.Client, sent: dict[str, str]) -> None:
    assert refusal(client.post("/subjects/t-value/versions", json=sent)) == (422, 42201)
    assert client.get("/subjects").json() == []


def test_compatibility_is_backward_until_set_otherwise(client: httpx.Client) -> None:
    register(client, "t-value", record(REQUIRED))
    new_required = record({"name": "c", "type": "int"})
    refused = client.post("/subjects/t-value/versions", json=body(new_required))
    assert refusal(refused) == (409, 409)
    check = "/compatibility/subjects/t-value/versions"
    assert client.post(f"{check}/latest", json=body(new_required)).json() == {
        "is_compatible": False
    }
    told = client.post(f"{check}?verbose=true", json=body(new_required)).json()
    assert told["messages"] == [
        "/c: the writer lacks this field and the reader has no default for it"
    ]
    assert client.get("/config").json() == {"compatibilityLevel": "BACKWARD"}
    assert client.put("/config/t-value", json={"compatibility": "none"}).json() == {
        "compatibility": "NONE"
    }
    assert register(client, "t-value", new_required) == 2
    assert client.get("/config/t-value").json() == {"compatibilityLevel": "NONE"}
    assert client.delete("/config/t-value").json() == {"compatibility": "NONE"}
    assert client.get("/config/t-value?defaultToGlobal=true").json() == {
        "compatibilityLevel": "BACKWARD"
    }
    assert refusal(client.put("/config", json={"compatibility": "SOME"})) == (422, 42203)


@pytest.mark.parametrize(
    ("level", "compatible"),
    [
        ("BACKWARD", True),  # drops b, which the last version has
        ("BACKWARD_TRANSITIVE", False),  # but the first one wrote a as a string
        ("FORWARD", False),  # the last version reads b, which has no default there
        ("FULL", False),
        ("NONE", True),
    ],
)
def test_levels(client: httpx.Client, level: str, compatible: bool) -> None:
    client.put("/config", json={"compatibility": "NONE"})
    register(client, "t-value", record({"name": "a", "type": "string"}))
    register(client, "t-value", record(REQUIRED, {"name": "b", "type": "int"}))
    client.put("/config", json={"compatibility": level})
    answer = client.post("/compatibility/subjects/t-value/versions", json=body(record(REQUIRED)))
    assert answer.json() == {"is_compatible": compatible}


def test_references_are_resolved(client: httpx.Client) -> None:
    register(client, "money", record(REQUIRED, name="shop.Money"))
    order = record({"name": "price", "type": "shop.Money"}, name="shop.Order")
    assert refusal(client.post("/subjects/o-value/versions", json=body(order))) == (422, 42201)
    references = [{"name": "shop.Money", "subject": "money", "version": 1}]
    schema_id = register(client, "o-value", order, references=references)
    assert client.get(f"/schemas/ids/{schema_id}").json()["references"] == references
    client.delete("/subjects/money")
    refused = client.delete("/subjects/money?permanent=true")
    assert refusal(refused) == (422, 42206)


def test_deletes_are_soft_first(client: httpx.Client) -> None:
    register(client, "t-value", record(REQUIRED))
    register(client, "t-value", record(REQUIRED, OPTIONAL))
    assert client.delete("/subjects/t-value/versions/1").json() == 1
    assert refusal(client.delete("/subjects/t-value/versions/1")) == (404, 40406)
    assert client.get("/subjects/t-value/versions").json() == [2]
    assert client.get("/schemas/ids/1").status_code == 200
    assert refusal(client.delete("/subjects/t-value?permanent=true")) == (404, 40405)
    assert client.delete("/subjects/t-value").json() == [2]
    assert refusal(client.delete("/subjects/t-value")) == (404, 40404)
    assert client.get("/subjects").json() == []
    assert client.get("/subjects?deleted=true").json() == ["t-value"]
    assert register(client, "t-value", record(REQUIRED)) == 1
    assert client.get("/subjects/t-value/versions").json() == [3]
    client.delete("/subjects/t-value")
    assert client.delete("/subjects/t-value?permanent=true").json() == [1, 2, 3]
    assert refusal(client.get("/schemas/ids/1")) == (404, 40403)


def test_schemas_survive_a_restart_and_hand_written_files_get_ids(tmp_path: Path) -> None:
    with RegistryServer(tmp_path) as server, httpx.Client(base_url=server.url) as client:
        register(client, "a%2Fb-value", record(REQUIRED))
        client.put("/config/a%2Fb-value", json={"compatibility": "FULL"})
    assert json.loads((tmp_path / "a%2Fb-value" / "1.avsc").read_text()) == record(REQUIRED)
    (tmp_path / "by-hand").mkdir()
    (tmp_path / "by-hand" / "1.avsc").write_text('"long"')
    with RegistryServer(tmp_path) as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/subjects").json() == ["a/b-value", "by-hand"]
        assert client.get("/subjects/by-hand/versions/1").json()["id"] == 2
        assert client.get("/config/a%2Fb-value").json() == {"compatibilityLevel": "FULL"}
        assert register(client, "new", "bytes") == 3


def test_subjects_cannot_leave_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "schemas"
    with RegistryServer(folder) as server, httpx.Client(base_url=server.url) as client:
        register(client, "%2E%2E", "string")
        register(client, "%2E%2E%2Fup", "string")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["schemas"]
    with RegistryServer(folder) as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/subjects").json() == ["..", "../up"]


def test_second_registry_on_the_folder_or_port_is_refused(tmp_path: Path) -> None:
    with RegistryServer(tmp_path / "one") as server:
        with pytest.raises(ConfigError, match="another registry serves"):
            RegistryServer(tmp_path / "one").start()
        with pytest.raises(ConfigError, match="is in use"):
            RegistryServer(tmp_path / "two", server.port).start()
        RegistryServer(tmp_path / "two").stop()


FOREGROUND = """
from pathlib import Path
from spark_jobs.embedded.registry import run_registry
run_registry({port}, Path({folder!r}))
"""


@pytest.mark.service
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_foreground_command_ends_within_seconds(tmp_path: Path, number: signal.Signals) -> None:
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [sys.executable, "-c", FOREGROUND.format(port=port, folder=str(tmp_path))],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("the schema registry is ready at ")
    with httpx.Client() as client:  # an open connection must not hold it up
        assert client.get(f"http://127.0.0.1:{port}/subjects").json() == []
        os.kill(process.pid, number)
        output, _ = process.communicate(timeout=5)
    assert process.returncode == 0
    assert output == "stopping the registry\n"
    assert not port_answers(port)
