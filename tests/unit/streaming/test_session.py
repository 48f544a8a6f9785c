"""What the machine's settings, variables `REJOIN_...`, make of Spark's."""

from pathlib import Path

import pytest

from spark_jobs.kernel.jvm import class_path
from spark_jobs.options.settings import declared_settings
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.streaming import class_archive
from spark_jobs.streaming import session as module

_ROCKSDB_MB = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"


VARIABLES = ["MEMORY_MB", "STATE_MEMORY_MB", "MASTER", "WORK_DIR", "SPARK_LOG_LEVEL"]
VARIABLES += ["SPARK_PROPERTIES"]


def options(
    monkeypatch: pytest.MonkeyPatch, mode: str = "micro-batch", **variables: str
) -> dict[str, str]:
    for name in VARIABLES:
        monkeypatch.delenv(f"REJOIN_{name}", raising=False)
    monkeypatch.setenv("REJOIN_CLASS_ARCHIVE", "off")
    for name, value in variables.items():
        monkeypatch.setenv(f"REJOIN_{name}", value)
    declared = declared_settings({"rejoin.parallelism": "3", "rejoin.mode": mode})
    settings = job_settings(declared, "job", Overrides(), read_environment())
    return module.session_options(settings, ["a.jar"])


@pytest.mark.parametrize(
    ("machine_mb", "heap_mb", "rocksdb_mb"),
    [(4_000, 1_024, 640), (32_000, 4_000, 1_384), (256_000, 8_192, 2_432)],
)
def test_memory_is_the_machines(
    monkeypatch: pytest.MonkeyPatch, machine_mb: int, heap_mb: int, rocksdb_mb: int
) -> None:
    monkeypatch.setattr(module, "machine_memory_mb", lambda: machine_mb)
    found = options(monkeypatch)
    assert (found["spark.driver.memory"], found[_ROCKSDB_MB]) == (f"{heap_mb}m", str(rocksdb_mb))


@pytest.mark.parametrize(
    ("mode", "heap_mb", "begins"),
    [
        ("micro-batch", 3_000, (1_532, 32)),
        ("real-time", 3_000, (1_628, 128)),
        ("real-time", 400, (300, 100)),
    ],
)
def test_a_quiet_driver_occupies_little_of_its_heap(
    monkeypatch: pytest.MonkeyPatch, mode: str, heap_mb: int, begins: tuple[int, int]
) -> None:
    found = options(monkeypatch, mode, MEMORY_MB=str(heap_mb))
    begin_mb, new_mb = begins
    words = found["spark.driver.extraJavaOptions"].split()
    assert {f"-Xms{begin_mb}m", f"-XX:NewSize={new_mb}m"} <= set(words)


@pytest.mark.parametrize(
    ("mode", "master", "calls"),
    [
        ("micro-batch", "", 100_000),
        ("micro-batch", "spark://host:7077", 100_000),
        ("real-time", "", 20_000),
    ],
)
def test_the_jvm_optimises_what_is_called_often(
    monkeypatch: pytest.MonkeyPatch, mode: str, master: str, calls: int
) -> None:
    found = options(monkeypatch, mode, MASTER=master)
    for whose in ("driver", "executor"):
        words = found[f"spark.{whose}.extraJavaOptions"].split()
        assert f"-XX:Tier4InvocationThreshold={calls}" in words
        assert f"-XX:Tier4MinInvocationThreshold={calls // 5}" in words
        assert f"-XX:Tier4CompileThreshold={calls * 2}" in words
        assert f"-XX:Tier4BackEdgeThreshold={calls * 6}" in words


@pytest.mark.parametrize(("mode", "gives_back"), [("micro-batch", True), ("real-time", False)])
def test_the_jvm_gives_back_what_rocksdb_freed(
    monkeypatch: pytest.MonkeyPatch, mode: str, gives_back: bool
) -> None:
    found = options(monkeypatch, mode, MASTER="spark://host:7077")
    for whose in ("driver", "executor"):
        assert ("TrimNativeHeapInterval" in found[f"spark.{whose}.extraJavaOptions"]) == gives_back


def test_variables_win(monkeypatch: pytest.MonkeyPatch) -> None:
    found = options(
        monkeypatch,
        MEMORY_MB="3000",
        STATE_MEMORY_MB="700",
        MASTER="spark://host:7077",
        SPARK_LOG_LEVEL="INFO",
    )
    assert found["spark.driver.memory"] == "3000m"
    assert found[_ROCKSDB_MB] == "559"
    assert found["spark.master"] == "spark://host:7077"
    assert found["spark.log.level"] == "INFO"


def test_the_jvm_gets_what_spark_submit_reads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "spark.properties"
    given = {"defaultJavaOptions": "-Da='b c'", "extraLibraryPath": "/lib", "extraClassPath": "b"}
    file.write_text("".join(f"spark.driver.{name}={value}\n" for name, value in given.items()))
    found = options(monkeypatch, MEMORY_MB="700", SPARK_PROPERTIES=str(file))
    started = module._jvm_settings(found)
    assert (started.heap, started.library_path) == ("700m", "/lib")
    assert started.class_path == ["a.jar", "b"]
    assert started.java_options[0] == "-Da=b c"


def test_properties_of_the_user_win_over_sizes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rocksdb = "spark.sql.streaming.stateStore.rocksdb."
    names = (f"{rocksdb}blockSizeKB", f"{rocksdb}writeBufferSizeMB", "spark.buffer.pageSize")
    ours = options(monkeypatch)
    assert [ours[name] for name in names] == ["16", "128", "1m"]
    file = tmp_path / "spark.properties"
    file.write_text("".join(f"{name}={size}\n" for name, size in zip(names, "123", strict=True)))
    theirs = options(monkeypatch, SPARK_PROPERTIES=str(file))
    assert [theirs[name] for name in names] == ["1", "2", "3"]


def test_spark_is_local_and_quiet_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    found = options(monkeypatch)
    assert (found["spark.master"], found["spark.log.level"]) == ("local[3]", "ERROR")


@pytest.mark.parametrize("master", ["", "local[2]", "local-cluster[2,1,2048]"])
def test_spark_is_reached_on_this_machine_alone(
    monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    found = options(monkeypatch, MASTER=master)
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "127.0.0.1"


def test_a_cluster_gets_what_its_executors_need(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "spark.properties"
    file.write_text("spark.executor.memory 4g\nspark.executor.extraJavaOptions=-Dzone=a\n")
    found = options(monkeypatch, MASTER="spark://host:7077", SPARK_PROPERTIES=str(file))
    assert "spark.driver.host" not in found  # Spark finds the address that the cluster reaches
    assert found["spark.jars"] == "a.jar"
    assert found["spark.executor.memory"] == "4g"
    assert found[_ROCKSDB_MB] == "1408"  # of 4096 for state
    assert found["spark.executor.memoryOverhead"] == f"{4096 + 1024 + 409}m"
    assert found["spark.executor.extraJavaOptions"].endswith(
        "-XX:TrimNativeHeapInterval=30000 -Xms4096m -Dzone=a"
    )
    assert "spark.executor.extraClassPath" not in found  # the driver's paths are not theirs
    assert found["spark.plugins"] == "org.apache.spark.sql.rejoin.run.ExecutorReports"
    assert found["spark.network.timeout"] == "60s"
    # of a job's whole life Spark would count failed pods, and end the driver after some
    assert found["spark.executor.failuresValidityInterval"] == "10m"
    assert found["spark.executorEnv.MALLOC_ARENA_MAX"] == "2"
    assert "spark.network.timeout" not in options(monkeypatch, MASTER="local[2]")


def test_executors_of_this_machine_share_the_drivers_archive_of_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = options(monkeypatch, MASTER="local-cluster[2,1,1024]")
    path = class_path(found["spark.driver.extraClassPath"].split(":"))
    assert found["spark.executor.extraClassPath"].split(":") == path
    shared = [
        [word for word in found[f"spark.{whose}.extraJavaOptions"].split() if "Archive" in word]
        for whose in ("driver", "executor")
    ]
    assert shared[0] == shared[1]


def test_properties_win_over_defaults_and_keep_their_references(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(
        "# of this machine\nspark.ui.enabled true\nspark.driver.host=10.0.0.1\n"
        "spark.plugins a.Plugin\nspark.hadoop.fs.s3a.secret.key=${env:S3_SECRET}\n"
        "spark.speculation false\n"
    )
    found = options(monkeypatch, SPARK_PROPERTIES=str(file))
    assert found["spark.ui.enabled"] == "true"
    assert found["spark.driver.host"] == "10.0.0.1"
    assert found["spark.plugins"].endswith(".ExecutorReports,a.Plugin")
    assert found["spark.hadoop.fs.s3a.secret.key"] == "${env:S3_SECRET}"


def test_folders_stand_in_the_work_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REJOIN_WORK_DIR", str(tmp_path))
    settings = job_settings(declared_settings({}), "job", Overrides(), read_environment())
    assert Path(settings.checkpoint).is_relative_to(tmp_path)
    assert settings.status_dir.is_relative_to(tmp_path)


def test_the_archive_of_classes_is_made_or_used_while_it_is_newer_than_the_jar(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    archive, jar = tmp_path / "classes.jsa", tmp_path / "kernel.jar"
    jar.write_bytes(b"")
    monkeypatch.setattr(class_archive, "ARCHIVE", archive)
    monkeypatch.setattr(class_archive, "is_fresh", lambda: archive.is_file())
    made, used = (
        f"-XX:{option}={archive}" for option in ("ArchiveClassesAtExit", "SharedArchiveFile")
    )
    assert made in options(monkeypatch, CLASS_ARCHIVE="make")["spark.driver.extraJavaOptions"]
    assert used not in options(monkeypatch, CLASS_ARCHIVE="use")["spark.driver.extraJavaOptions"]
    archive.write_bytes(b"")
    assert used in options(monkeypatch, CLASS_ARCHIVE="use")["spark.driver.extraJavaOptions"]
    assert used not in options(monkeypatch, CLASS_ARCHIVE="off")["spark.driver.extraJavaOptions"]
