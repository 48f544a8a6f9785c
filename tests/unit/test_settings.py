"""Effective settings: what wins over what, and what is refused."""

from pathlib import Path

import pytest

from spark_jobs.errors import ConfigError
from spark_jobs.options.settings import declared_settings
from spark_jobs.settings import (
    MAX_OFFSETS,
    Environment,
    JobSettings,
    Overrides,
    epoch_words,
    job_settings,
    read_environment,
    resolve_references,
)


def settings(declared: dict[str, str], **overrides: object) -> JobSettings:
    return job_settings(
        declared_settings(declared), "orders", Overrides(**overrides), Environment()
    )  # type: ignore[arg-type]


def test_defaults_come_from_the_file_name() -> None:
    found = settings({})
    assert found.name == "orders"
    assert Path(found.checkpoint).parts[-3:] == (".rejoin", "orders", "checkpoint")
    assert found.status_dir.parts[-3:] == (".rejoin", "orders", "status")
    assert (found.key_groups, found.trigger_interval_ms) == (128, 200)
    assert found.max_offsets_per_trigger == MAX_OFFSETS
    assert found.parallelism is None


def test_set_statements_win_over_defaults_and_the_command_line_over_both() -> None:
    declared = {
        "rejoin.checkpoint": "s3a://bucket/a",
        "rejoin.trigger-interval": "1 s",
        "rejoin.parallelism": "3",
        "rejoin.key-groups": "64",
        "pipeline.name": "Shop orders",
    }
    assert settings(declared).checkpoint == "s3a://bucket/a"
    found = settings(declared, checkpoint="/tmp/b")  # noqa: S108
    assert found.checkpoint == "/tmp/b"  # noqa: S108
    assert found.trigger_interval_ms == 1000
    assert (found.cores(), found.key_groups) == (3, 64)
    assert found.name == "Shop-orders"


def test_more_tasks_than_key_groups_are_refused() -> None:
    with pytest.raises(ConfigError, match="PARALLELISM_TOO_HIGH"):
        settings({"rejoin.parallelism": "8", "rejoin.key-groups": "4"})


def test_environment_problems_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_MEMORY_MB", "much")
    with pytest.raises(ConfigError, match="REJOIN_MEMORY_MB"):
        read_environment()
    monkeypatch.setenv("REJOIN_MEMORY_MB", "2048")
    assert read_environment().memory_mb == 2048


def test_references_are_resolved_late_and_masked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("geheim\n")
    monkeypatch.setenv("KAFKA_USER", "ann")
    text = f'username="${{env:KAFKA_USER}}" password="${{file:{tmp_path}/password}}"'
    found = resolve_references(text)
    assert found.get_secret_value() == 'username="ann" password="geheim"'
    assert "geheim" not in repr(found)
    with pytest.raises(ConfigError, match="NO_SUCH_VARIABLE"):
        resolve_references("${env:NO_SUCH_VARIABLE}")


def test_a_word_on_an_epoch_is_about_one_query() -> None:
    assert epoch_words(["yes"], ["a"]) == {"a": "yes"}
    assert epoch_words(["a=no", "b=yes"], ["a", "b"]) == {"a": "no", "b": "yes"}


@pytest.mark.parametrize("given", [["yes"], ["c=yes"], ["a=maybe"], ["a=yes", "a=no"], [""]])
def test_a_word_that_could_be_about_another_is_refused(given: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        epoch_words(given, ["a", "b"])
    assert refused.value.code == "EPOCH_WRITTEN"
    assert "a=yes or b=yes" in str(refused.value.hint)
