"""`rejoin check --offline`: plan and checkpoint, without a JVM or a broker."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spark_jobs.cli import app
from spark_jobs.driver.queries import present
from spark_jobs.driver.verdict import written_now
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.settings import Environment, Overrides, job_settings
from spark_jobs.sql.bind.binder import bind
from spark_jobs.streaming.manifest import VERSION, Manifest
from spark_jobs.streaming.sources import ScanStart

KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1'"
JOB = f"""
CREATE TABLE o (id INT, k INT) WITH ({KAFKA}, 'topic' = 'o', 'format' = 'json');
CREATE TABLE r (k INT, v INT) WITH ({KAFKA}, 'topic' = 'r', 'format' = 'json');
CREATE TABLE s (a INT, b INT) WITH ({KAFKA}, 'topic' = 's', 'format' = 'changelog-json');
"""
JOB += "INSERT INTO s SELECT o.id, r.v FROM o LEFT JOIN r ON o.k = r.k;"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Of JOB, after some epoch."""
    bound = bind(JOB)
    [planned] = plan(bound)
    assert isinstance(planned.root, KafkaSink)
    now = present(planned.root, job_settings({}, "job", Overrides(), Environment()))
    scans = {
        s.id: ScanStart(starts={t: {0: -2} for t in s.topics}, ends=None) for s in now.plan.scans
    }
    manifest = Manifest(
        version=VERSION,
        checkpoint="c",
        query="s",
        topics=("o", "r"),
        groups=now.groups,
        parallelism=2,
        state=now.digest,
        scans=scans,
        plan=now.plan,
        written_by=written_now(),
    )
    folder = tmp_path / "checkpoint" / "s"
    (folder / "rejoin").mkdir(parents=True)
    (folder / "rejoin" / "manifest.json").write_text(manifest.model_dump_json(indent=1))
    for log, text in (("commits", "v1\n{}"), ("offsets", 'v1\n{}\n{"o":{"0":1}}\n{"r":{"0":1}}')):
        (folder / log).mkdir()
        (folder / log / "0").write_text(text)
    return folder.parent


def check(tmp_path: Path, sql: str, checkpoint: Path | str) -> tuple[int, list[dict[str, Any]]]:
    job = tmp_path / "job.sql"
    job.write_text(sql, encoding="utf-8")
    arguments = ["check", str(job), "--checkpoint", str(checkpoint), "--offline", "--json"]
    result = CliRunner().invoke(app, arguments)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(finding["level"] in ("ok", "warning", "error") for finding in found), result.output
    return result.exit_code, found


def texts(found: list[dict[str, Any]], level: str) -> str:
    return "\n".join(f"{f['about']}: {f['code']} {f['text']}" for f in found if f["level"] == level)


def test_the_job_that_wrote_it(tmp_path: Path, checkpoint: Path) -> None:
    code, found = check(tmp_path, JOB, checkpoint)
    assert code == 0
    assert "query s: CHECKPOINT_IDENTICAL identical to the checkpoint's" in texts(found, "ok")
    assert not texts(found, "warning")


def test_a_new_checkpoint(tmp_path: Path) -> None:
    code, found = check(tmp_path, JOB, tmp_path / "none")
    assert code == 0
    assert "query s: CHECKPOINT_NEW new: starts where its tables say" in texts(found, "ok")


def test_a_change_behind_the_state_is_a_warning(tmp_path: Path, checkpoint: Path) -> None:
    code, found = check(tmp_path, JOB.replace("o.id, r.v F", "o.id, r.v + 1 F"), checkpoint)
    assert code == 0
    assert "query s: CHECKPOINT_COMPATIBLE compatible: continues from the checkpoint" in texts(
        found, "ok"
    )
    assert "sink, SELECT: then" in texts(found, "warning")


def test_other_state_is_an_error_with_a_way_out(tmp_path: Path, checkpoint: Path) -> None:
    wider = JOB.replace("v INT", "v BIGINT").replace("b INT", "b BIGINT")
    code, found = check(tmp_path, wider, checkpoint)
    assert code == 2
    assert "right row, column 1: then v INT, now v BIGINT" in texts(found, "error")
    assert "restore the old SQL" in found[-1]["hint"]


def test_an_insert_that_is_gone_leaves_its_state(tmp_path: Path, checkpoint: Path) -> None:
    other = JOB.replace("TABLE s", "TABLE z").replace("INTO s", "INTO z")
    code, found = check(tmp_path, other, checkpoint)
    assert code == 0
    assert "query s: CHECKPOINT_LEFT_OVER is in the checkpoint and not in the job" in texts(
        found, "warning"
    )
    assert "query z: CHECKPOINT_NEW new" in texts(found, "ok")


def test_a_checkpoint_without_its_manifest(tmp_path: Path, checkpoint: Path) -> None:
    (checkpoint / "s" / "rejoin" / "manifest.json").unlink()
    code, found = check(tmp_path, JOB, checkpoint)
    assert code == 2
    assert "has no rejoin/manifest.json" in texts(found, "error")


def test_a_damaged_manifest(tmp_path: Path, checkpoint: Path) -> None:
    (checkpoint / "s" / "rejoin" / "manifest.json").write_text('{"version": 2, "che')
    code, found = check(tmp_path, JOB, checkpoint)
    assert code == 2
    assert "MANIFEST_UNREADABLE" in texts(found, "error")


def test_a_location_that_needs_spark(tmp_path: Path) -> None:
    code, found = check(tmp_path, JOB, "s3a://bucket/checkpoint")
    assert code == 2
    assert "CHECKPOINT_NOT_LOCAL" in texts(found, "error")


def test_a_file_that_cannot_be_planned(tmp_path: Path) -> None:
    job = tmp_path / "job.sql"
    job.write_text("INSERT INTO s SELECT 1", encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(job), "--offline"])
    assert result.exit_code != 0
    assert "UNKNOWN_TABLE" in str(result.exception)
