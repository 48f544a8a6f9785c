"""What the place of a checkpoint adds to Spark's settings and class path."""

from pathlib import Path

import pytest

from spark_jobs.options.settings import declared_settings
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.streaming.object_store import jars_for, properties_for
from spark_jobs.streaming.session import session_options

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
STREAM = "spark.hadoop.fs.s3a.input.stream.type"


def options(monkeypatch: pytest.MonkeyPatch, checkpoint: str, properties: str) -> dict[str, str]:
    monkeypatch.setenv("REJOIN_SPARK_PROPERTIES", properties)
    declared = declared_settings({"rejoin.parallelism": "1", "rejoin.checkpoint": checkpoint})
    settings = job_settings(declared, "job", Overrides(), read_environment())
    return session_options(settings, [])


def test_s3_has_settings_that_properties_may_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(f"{STREAM} prefetch\n")
    found = options(monkeypatch, "s3a://bucket/a", str(file))
    assert found[MANAGER].endswith(".ObjectStoreFiles")
    assert found[STREAM] == "prefetch"


@pytest.mark.parametrize("checkpoint", ["/data/a:b", "file:///data/a"])
def test_files_on_a_disk_have_a_manager_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, checkpoint: str
) -> None:
    file = tmp_path / "spark.properties"
    file.write_text("")
    assert options(monkeypatch, checkpoint, str(file))[MANAGER].endswith(".DiskFiles")
    assert jars_for(checkpoint) == []


def test_other_places_have_sparks_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text("")
    assert MANAGER not in options(monkeypatch, "gs://bucket/a", str(file))
    assert jars_for("gs://bucket/a") == []


def test_a_store_beside_a_disk_keeps_its_manager() -> None:
    found = properties_for({}, "/data/a", "s3a://bucket/a")
    assert found[MANAGER].endswith(".ObjectStoreFiles")
    assert MANAGER not in properties_for({}, "/data/a")


def test_s3_has_jars_of_its_own() -> None:
    names = [path.name for path in jars_for("s3a://bucket/a")]
    assert any(name.startswith("hadoop-aws-") for name in names)
    assert not any(name.startswith("bundle-") for name in names)
