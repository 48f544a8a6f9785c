"""An executor pod's process, started with the variables that Spark gives to the pod."""

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

DRIVER = "spark://CoarseGrainedScheduler@rejoin-0.rejoin-driver:7078"
VARIABLES = {
    "SPARK_USER": "rejoin",
    "SPARK_DRIVER_URL": DRIVER,
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "2048m",
    "SPARK_APPLICATION_ID": "spark-4f1c",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_EXECUTOR_POD_NAME": "shop-9a-exec-7",
    # ten of them: numbers, not texts, give their order
    **{f"SPARK_JAVA_OPT_{n}": f"-Dn={n}" for n in range(10, 0, -1)},
    "SPARK_JAVA_OPT_0": "-Dgreeting=two words\nand a line",
}


def start(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """With a java that prints its arguments, one after the other, as they arrive."""
    java = folder / "java"
    java.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    java.chmod(0o755)
    given = [f"{name}={value}" for name, value in variables.items()]
    command = [sys.executable, "-m", "spark_jobs.streaming.executor", *arguments]
    return subprocess.run(
        ["/usr/bin/env", "-i", f"PATH={folder}:/usr/bin:/bin", *given, *command],
        capture_output=True, text=True, timeout=60, check=False,
        cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip


def test_the_jvm_gets_what_spark_says(tmp_path: Path) -> None:
    done = start(tmp_path, "executor", **VARIABLES)
    assert done.returncode == 0, done.stderr
    options, backend, rest = done.stdout.partition(
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend\0"
    )
    assert backend
    given = options.split("\0")[:-1]
    assert given[:11] == ["-Dgreeting=two words\nand a line", *(f"-Dn={n}" for n in range(1, 11))]
    jars = f"{Path(pyspark.__file__).parent}/jars/*"
    assert given[11:] == ["-Xms2048m", "-Xmx2048m", "-cp", jars]
    words = rest.split("\0")[:-1]
    assert dict(zip(words[::2], words[1::2], strict=True)) == {
        "--driver-url": DRIVER,
        "--executor-id": "7",
        "--cores": "2",
        "--app-id": "spark-4f1c",
        "--hostname": "10.0.0.7",
        "--resourceProfileId": "0",
        "--podName": "shop-9a-exec-7",
    }


def test_what_the_user_adds_to_class_path_and_libraries_comes_first(tmp_path: Path) -> None:
    more = {"SPARK_CLASSPATH": "/x/a.jar", "SPARK_EXECUTOR_LIBRARY_PATH": "/x/native"}
    done = start(tmp_path, "executor", **VARIABLES, **more)
    given = done.stdout.split("\0")
    assert given[given.index("-cp") + 1].startswith("/x/a.jar:")
    assert "-Djava.library.path=/x/native" in given


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin/java").write_text("#!/bin/sh\nprintf from-home\n")
    (home / "bin/java").chmod(0o755)
    done = start(tmp_path, "executor", **VARIABLES, JAVA_HOME=str(home))
    assert done.stdout == "from-home"


@pytest.mark.parametrize("missing", ["SPARK_DRIVER_URL", "SPARK_EXECUTOR_POD_IP"])
def test_what_spark_did_not_say_is_named(tmp_path: Path, missing: str) -> None:
    done = start(tmp_path, "executor", **{k: v for k, v in VARIABLES.items() if k != missing})
    assert (done.returncode, done.stdout) == (1, "")
    assert f"SETTING_INVALID {missing}: Field required" in done.stderr


def test_another_role_is_refused(tmp_path: Path) -> None:
    done = start(tmp_path, "driver", **VARIABLES)
    assert (done.returncode, done.stdout) == (1, "")
    assert "'executor'" in done.stderr
