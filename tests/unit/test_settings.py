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


def test_a_file_of_spark_properties_wins_over_those_of_the_job(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text("spark.cores.max 4\n")
    declared = {"spark.cores.max": "2", "spark.executor.memory": "3g", "rejoin.key-groups": "64"}
    alone = settings(declared, master="spark://host:7077")
    assert alone.spark_properties == {"spark.cores.max": "2", "spark.executor.memory": "3g"}
    assert alone.cores() == 2
    both = settings(declared, master="spark://host:7077", spark_properties=file)
    assert both.spark_properties == {"spark.cores.max": "4", "spark.executor.memory": "3g"}


def test_more_tasks_than_key_groups_are_refused() -> None:
    with pytest.raises(ConfigError, match="PARALLELISM_TOO_HIGH"):
        settings({"rejoin.parallelism": "8", "rejoin.key-groups": "4"})


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local[4]", 4), ("local[3,2]", 3), ("local", 1), ("local-cluster[2,3,1024]", 6)],
)
def test_a_task_per_core_of_the_master(master: str, cores: int) -> None:
    assert settings({}, master=master).cores() == cores


def test_cores_of_a_cluster_are_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="PARALLELISM_UNKNOWN"):
        settings({}, master="spark://host:7077")
    assert settings({"rejoin.parallelism": "5"}, master="spark://host:7077").cores() == 5
    file = tmp_path / "spark.properties"
    file.write_text("spark.executor.instances 3\nspark.executor.cores 2\n")
    assert settings({}, master="k8s://https://host", spark_properties=file).cores() == 6
    file.write_text("spark.cores.max 4\nspark.executor.cores 2\n")
    assert settings({}, master="spark://host:7077", spark_properties=file).cores() == 4


def test_the_command_line_wins_over_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("variable", "option"):
        (tmp_path / name).write_text(f"spark.executorEnv.FROM {name}\n")
    monkeypatch.setenv("REJOIN_MASTER", "local[3]")
    monkeypatch.setenv("REJOIN_SPARK_PROPERTIES", str(tmp_path / "variable"))
    found = settings({})
    assert (found.master, found.spark_properties["spark.executorEnv.FROM"]) == (
        "local[3]",
        "variable",
    )
    found = settings({}, master="local[2]", spark_properties=tmp_path / "option")
    assert (found.master, found.spark_properties["spark.executorEnv.FROM"]) == (
        "local[2]",
        "option",
    )


@pytest.mark.parametrize("master", ["yarn", "local[x]", "spark:host", "local-cluster[2,1]"])
def test_a_master_of_another_form_is_refused(master: str) -> None:
    with pytest.raises(ConfigError, match="MASTER_UNKNOWN"):
        settings({"rejoin.parallelism": "2"}, master=master)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("spark.speculation true", "has to be false: two attempts"),
        ("spark.dynamicAllocation.enabled=true", "takes its state with it"),
        ("spark.sql.adaptive.enabled=true", "has to be false: results or checkpoints"),
        ("spark.sql.streaming.stateStore.providerClass my.Provider", "has to be org.apache"),
        ("spark.master spark://host:7077", "use --master"),
        ("spark.driver.memory 4g", "use REJOIN_MEMORY_MB"),
        ("spark.hadoop.fs.s3a.secret.key abc", "is a secret: refer to it"),
        ("spark.driver.extraJavaOptions -Dp=${env:P}", "command line"),
        ("spark.driver.defaultJavaOptions -Dp=${env:P}", "command line"),
        ("cores.max 4", "line 2 is no property of Spark"),
    ],
)
def test_what_a_job_cannot_run_with_is_refused(tmp_path: Path, line: str, says: str) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(f"spark.cores.max 4\n{line}\n")
    with pytest.raises(ConfigError, match="SPARK_PROPERTY_REFUSED") as refused:
        settings({}, spark_properties=file)
    assert says in refused.value.message
    assert "abc" not in refused.value.message


@pytest.mark.parametrize(
    "line",
    [
        "spark.authenticate.secret.file /run/secrets/rejoin/spark",
        "spark.kubernetes.authenticate.oauthTokenFile /run/secrets/token",
        "spark.kubernetes.executor.secrets.rejoin-secrets /run/secrets/rejoin",
        "spark.kubernetes.executor.secretKeyRef.KEY rejoin-secrets:key",
        "spark.hadoop.fs.s3a.secret.key ${file:/run/secrets/rejoin/s3}",
    ],
)
def test_where_a_secret_is_may_be_said(tmp_path: Path, line: str) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(f"{line}\n")
    key, _, value = line.partition(" ")
    assert settings({}, spark_properties=file).spark_properties == {key: value}


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
