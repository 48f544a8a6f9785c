"""JVMs are started as Spark's own launcher would."""

import signal
import subprocess
from pathlib import Path

import pytest

from spark_jobs.errors import ConfigError
from spark_jobs.kernel import jvm as module
from spark_jobs.kernel.build import java, kernel_jar, spark_jars
from spark_jobs.kernel.calls import Kernel
from spark_jobs.kernel.jvm import Jvm, JvmSettings, class_path, close
from spark_jobs.kernel.standalone import launch

JARS = spark_jars()[0].parent
SUBMITTED = {
    "spark.master": "local[1]",
    "spark.driver.memory": "700m",
    "spark.driver.extraClassPath": "first.jar",
    "spark.driver.extraJavaOptions": "-Da=1 -Db='two words'",
}
SETTINGS = JvmSettings("700m", ["first.jar"], ["-Da=1", "-Db=two words"], SUBMITTED)


def launched() -> list[str]:
    """The command that Spark's launcher makes."""
    submitted = [word for pair in SUBMITTED.items() for word in ("--conf", "=".join(pair))]
    launcher = ["-cp", f"{JARS}/*", "org.apache.spark.launcher.Main"]
    launcher += ["org.apache.spark.deploy.SparkSubmit", *submitted, "pyspark-shell"]
    given = [f"SPARK_HOME={JARS.parent}", "SPARK_SCALA_VERSION=2.13"]
    done = subprocess.run(
        ["/usr/bin/env", *given, java(), *launcher],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [word for word in done.stdout.strip("\n\0").split("\0") if word.strip()]


def test_command_is_that_of_sparks_launcher() -> None:
    _, cp, path, *arguments = launched()
    assert cp == "-cp"
    assert module._arguments(SETTINGS) == arguments
    first, conf, slf4j, rest = path.split(":")
    own = class_path(["first.jar"])
    assert own[:3] == [first, conf, slf4j]
    assert rest == f"{JARS}/*"
    left_out = {jar.name for jar in JARS.glob("*.jar")} - {Path(entry).name for entry in own}
    assert {name for name in left_out if not name.startswith(module._OMITTED)} == set()


@pytest.mark.parametrize("start", module._OMITTED)
def test_each_jar_that_is_omitted_is_one_of_sparks(start: str) -> None:
    assert list(JARS.glob(f"{start}*.jar"))


def test_spark_env_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'HADOOP_CONF_DIR="/etc/hadoop of $OWNER"\n'
    (tmp_path / "spark-env.sh").write_text(script, encoding="utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("OWNER", "ours")
    path = class_path([])
    assert (path[0], path[-1]) == (str(tmp_path), "/etc/hadoop of ours")


def test_jvm_that_does_not_come_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho not today\nexit 3\n", encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    log = tmp_path / "status" / "driver.log"
    with pytest.raises(ConfigError, match=rf"SPARK_NOT_STARTED .*ended with 3 .*{log}"):
        Jvm(SETTINGS, log).gateway()
    assert log.read_text(encoding="utf-8") == "not today\n"


def test_killed_jvm_leaves_nothing() -> None:
    starting = Jvm(JvmSettings("100m", [], []))
    folder = starting._connection.parent
    starting.kill()
    assert starting._process.returncode is not None
    assert not folder.exists()


def test_a_jvm_that_ends_itself_does_not_wait_for_the_exit_of_its_libraries() -> None:
    gateway = launch(kernel_jar())
    try:
        Kernel(gateway.jvm).halt_after(0)
        assert gateway.proc.wait(60) == -signal.SIGKILL
    finally:
        close(gateway)
