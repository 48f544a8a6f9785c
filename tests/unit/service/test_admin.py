"""Verbs that change something: refused without the token, limited, audited, and answered."""

import json
import os
import threading
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service.admin import AUDIT_FILE, PER_MINUTE
from service.main import create_app
from service.settings import Settings
from spark_jobs.commands import (
    FOLDER,
    ReplayOrder,
    StateOrder,
    answer,
    discard,
    read_answer,
    send,
    take,
)

WORDS = "correct horse battery staple"
GOOD = {"Authorization": f"Bearer {WORDS}"}
VERBS = {
    "/admin/stop": None,
    "/admin/drain": None,
    "/admin/log-level": {"level": "INFO"},
    "/admin/dlq-replay": {"tables": ["orders"], "limit": 10},
    "/admin/state-get": {"lookups": [{"key": "42"}]},
}
WRONG = {
    "none": {},
    "wrong": {"Authorization": "Bearer wrong"},
    "no scheme": {"Authorization": WORDS},
    "empty": {"Authorization": "Bearer "},
    "another scheme": {"Authorization": f"Basic {WORDS}"},
    "longer": {"Authorization": f"Bearer {WORDS}x"},
}


@pytest.fixture
def admin(folder: Path, tmp_path: Path) -> TestClient:
    folder.mkdir()
    token_file = tmp_path / "token"
    token_file.write_text(f"{WORDS}\n")
    return TestClient(create_app(Settings(status_dir=folder, token_file=token_file)))


@pytest.mark.parametrize("address", VERBS)
@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
def test_no_verb_without_the_token(
    admin: TestClient, folder: Path, address: str, headers: dict[str, str]
) -> None:
    assert admin.post(address, json=VERBS[address], headers=headers).status_code == 401
    assert list(take(folder)) == []
    assert json.loads((folder / AUDIT_FILE).read_text())["outcome"] == "refused"


@pytest.mark.parametrize("address", VERBS)
def test_no_verbs_at_all_without_a_token_file(client: TestClient, address: str) -> None:
    assert client.post(address, json=VERBS[address], headers=GOOD).status_code == 404


def test_an_empty_token_file_is_none(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    settings = Settings(status_dir=folder, token_file=tmp_path / "token")
    answered = TestClient(create_app(settings)).post(
        "/admin/stop", headers={"Authorization": "Bearer "}
    )
    assert answered.status_code == 404


def test_a_command_reaches_the_driver_once_and_is_answered(admin: TestClient, folder: Path) -> None:
    asked = admin.post("/admin/log-level", json={"level": "DEBUG"}, headers=GOOD)
    assert asked.status_code == 202
    address = f"/admin/commands/{asked.json()['id']}"
    assert admin.get(address, headers=GOOD).status_code == 404
    [command] = take(folder)
    assert (command.verb, command.level) == ("log-level", "DEBUG")
    assert list(take(folder)) == []
    answer(folder, command, "done so")
    assert admin.get(address, headers=GOOD).json()["message"] == "done so"
    assert admin.get(address).status_code == 401


def test_a_wrong_level_is_refused(admin: TestClient, folder: Path) -> None:
    answered = admin.post("/admin/log-level", json={"level": "LOUD"}, headers=GOOD)
    assert answered.status_code == 422
    assert list(take(folder)) == []


def test_a_replay_reaches_the_driver_as_it_was_ordered(admin: TestClient, folder: Path) -> None:
    order = {"tables": ["orders"], "reasons": ["json-malformed"], "limit": 10}
    assert admin.post("/admin/dlq-replay", json=order, headers=GOOD).status_code == 202
    [command] = take(folder)
    assert command.verb == "dlq-replay"
    assert command.replay == ReplayOrder.model_validate(order)


@pytest.mark.parametrize(
    "order",
    [{"fix": "reboot"}, {"limit": 10**9}, {"limit": 0}, {"tables": ["a\u0000"]}, {"topic": "../x"}],
)
def test_a_replay_is_bounded_and_runs_nothing(
    admin: TestClient, folder: Path, order: dict[str, object]
) -> None:
    assert admin.post("/admin/dlq-replay", json=order, headers=GOOD).status_code == 422
    assert list(take(folder)) == []


def test_a_lookup_reaches_the_driver_and_masked_columns_stay_hidden(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(WORDS)
    settings = Settings(status_dir=folder, token_file=tmp_path / "token", mask_columns="card, name")
    admin = TestClient(create_app(settings))
    order = {"lookups": [{"operator": "q/join", "key": "[42]"}, {"key": "a"}], "limit": 3}
    asked = admin.post("/admin/state-get", json=order, headers=GOOD)
    assert asked.status_code == 202
    [command] = take(folder)
    assert command.state == StateOrder.model_validate(order)
    row = {"id": 1, "card0": 4111, "to": {"name": "Bob"}}
    found = {"key": {"LOWER(`name`)": "bob"}, "sides": [{"side": "left", "kept": [{"row": row}]}]}
    answer(folder, command, "1 row", state=[found])
    shown = admin.get(f"/admin/commands/{command.id}", headers=GOOD).json()["state"]
    masked = {"id": 1, "card0": "***", "to": {"name": "***"}}
    assert shown == [
        {"key": {"LOWER(`name`)": "***"}, "sides": [{"side": "left", "kept": [{"row": masked}]}]}
    ]


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"lookups": []},
        {"lookups": [{"key": "1"}] * 21},
        {"lookups": [{"key": "x" * 2001}]},
        {"lookups": [{"key": "1", "operator": "a\u0000"}]},
        {"lookups": [{"key": "1"}], "limit": 101},
        {"lookups": [{"key": "1", "checkpoint": "/etc"}]},
    ],
)
def test_a_lookup_is_bounded(admin: TestClient, folder: Path, order: dict[str, object]) -> None:
    assert admin.post("/admin/state-get", json=order, headers=GOOD).status_code == 422
    assert list(take(folder)) == []


def test_an_answer_can_be_waited_for(admin: TestClient, folder: Path) -> None:
    command = send(folder, "drain", "test")
    timer = threading.Timer(0.5, answer, (folder, command, "drains"))
    timer.start()
    address = f"/admin/commands/{command.id}"
    assert admin.get(f"{address}?wait=20", headers=GOOD).json()["message"] == "drains"
    assert admin.get(f"{address}?wait=21", headers=GOOD).status_code == 422


def test_nothing_is_read_of_who_has_no_token(admin: TestClient) -> None:
    assert admin.post("/admin/log-level", content=b"{broken").status_code == 401
    large = b'"' + b"x" * 100_000 + b'"'
    assert admin.post("/admin/log-level", content=large, headers=GOOD).status_code == 413


def test_a_folder_that_cannot_be_written(admin: TestClient, folder: Path) -> None:
    (folder / FOLDER).write_text("in the way")
    assert admin.post("/admin/stop", headers=GOOD).status_code == 503


def test_guessing_is_limited(admin: TestClient) -> None:
    for _ in range(PER_MINUTE):
        assert admin.post("/admin/stop").status_code == 401
    limited = admin.post("/admin/stop", headers=GOOD)
    assert limited.status_code == 429
    assert 0 < int(limited.headers["Retry-After"]) <= 61


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_whoever_floods_fills_no_audit(admin: TestClient, folder: Path, method: str) -> None:
    address = f"/admin/commands/{'0' * 16}" if method == "GET" else "/admin/stop"
    for _ in range(10 * PER_MINUTE):
        admin.request(method, address)
    lines = (folder / AUDIT_FILE).read_text().splitlines()
    outcomes = [json.loads(line)["outcome"] for line in lines]
    assert outcomes == ["refused"] * PER_MINUTE + ["limited"]


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b'{"verb":"stop"}', b"\xff" * 100_000])
def test_a_file_that_is_no_command_is_removed(folder: Path, text: bytes) -> None:
    (folder / FOLDER).mkdir(parents=True)
    (folder / FOLDER / "x.ask").write_bytes(text)
    assert list(take(folder)) == []
    assert list((folder / FOLDER).iterdir()) == []


def test_what_an_earlier_driver_was_asked_is_forgotten(folder: Path) -> None:
    command = send(folder, "stop", "test")
    discard(folder)
    assert list(take(folder)) == []
    assert read_answer(folder, command.id) is None


def test_a_pipe_or_a_folder_is_no_command(folder: Path) -> None:
    """A driver that opened the pipe would wait for ever."""
    commands = folder / FOLDER
    commands.mkdir(parents=True, exist_ok=True)
    os.mkfifo(commands / "1.ask")
    (commands / "2.ask").mkdir()
    os.mkfifo(commands / f"{'0' * 16}.answer")
    assert list(take(folder)) == []
    assert read_answer(folder, "0" * 16) is None
