"""What `rejoin rescale` refuses and says, without Spark."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs.checkpoint import rescale
from spark_jobs.checkpoint.rescale import StoppedQuery, check_parallelism
from spark_jobs.checkpoint.rescale_job import next_step, result_line
from spark_jobs.driver.verdict import way_out
from spark_jobs.errors import ConfigError, StateError
from spark_jobs.options.settings import declared_settings
from spark_jobs.plan.check.compatibility import wrong
from spark_jobs.settings import JobSettings, Overrides, job_settings, read_environment


def settings(**given: str) -> JobSettings:
    named = {f"rejoin.{name.replace('_', '-')}": value for name, value in given.items()}
    return job_settings(declared_settings(named), "job", Overrides(), read_environment())


def test_more_tasks_than_key_groups_are_refused() -> None:
    job = settings(key_groups="16", parallelism="2")
    check_parallelism(job, 16)
    with pytest.raises(ConfigError, match=r"--parallelism 17 is more than the 16 key groups"):
        check_parallelism(job, 17)


def test_the_output_says_what_the_job_file_needs() -> None:
    file = Path("orders.sql")
    assert next_step(file, settings(parallelism="2"), 5) == (
        "orders.sql says 2: before the next start, write SET 'rejoin.parallelism' = '5';"
    )
    assert "start the job" in next_step(file, settings(parallelism="5"), 5)
    assert "uses the checkpoint's" in next_step(file, settings(), 5)


def test_a_line_per_query() -> None:
    assert result_line("q", 2, 5, 1, 5 * 2**19) == "query q: from 2 to 5 tasks, 1 operator, 2.5 MiB"
    assert result_line("q", 2, 5, 0, 0) == "query q: from 2 to 5 tasks, no state"
    assert result_line("q", 5, 5, 2, 10) == "query q: has 5 tasks already"


def test_a_start_with_another_number_names_the_command() -> None:
    differing = wrong("CHECKPOINT_MISMATCH", "'rejoin.parallelism'", "2", "5", "")
    assert way_out([differing]) == (
        "SET 'rejoin.parallelism' = '2'; continues; `rejoin rescale --parallelism 5` moves the "
        "state to a new value: docs/upgrades.md"
    )
    groups = wrong("CHECKPOINT_MISMATCH", "'rejoin.key-groups'", "8", "16", "")
    assert "a new value needs a new checkpoint" in way_out([groups])


def test_an_epoch_that_is_not_committed_is_refused_and_the_folder_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_back: list[str] = []
    folder = SimpleNamespace(
        path="/checkpoint/sums",
        read_manifest=lambda: "manifest",
        committed_offsets=list,
        check_logs=lambda: None,
        begun_epoch=lambda: 8,
        unlock=lambda: given_back.append("lock"),
    )
    ownership = SimpleNamespace(release=lambda: given_back.append("ownership"))
    monkeypatch.setattr(rescale.CheckpointFolder, "open", lambda *_: folder)
    monkeypatch.setattr(rescale.Ownership, "take", lambda _: ownership)
    monkeypatch.setattr(rescale, "present", lambda *_: SimpleNamespace(parallelism=2))
    monkeypatch.setattr(rescale, "replace", lambda present, **_: present)
    monkeypatch.setattr(rescale, "judge", lambda *_: [])
    nothing: Any = None
    with ExitStack() as owned, pytest.raises(StateError) as refused:
        StoppedQuery.take(nothing, "sums", nothing, settings(), owned)
    assert refused.value.code == "RESCALE_EPOCH_OPEN"
    assert "epoch 8" in refused.value.message
    assert "stop it gracefully" in (refused.value.hint or "")
    assert given_back == ["ownership", "lock"]
