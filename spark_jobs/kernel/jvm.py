"""Starts a JVM with Spark's jars that Python talks to, as `spark-submit` would.

Without the script, and without the JVM that the script asks for the command: it takes half a second
of each start.
"""

import contextlib
import os
import shlex
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark.java_gateway import launch_gateway

from spark_jobs.errors import ConfigError
from spark_jobs.kernel.build import java, spark_jars

_SPARK_HOME = Path(pyspark.__file__).parent
_SCALA = "2.13"
# of what no join uses, the jars with the most classes: a JVM keeps the directory of every jar. The
# functions of MLlib would even be registered with each session, for which Scala reflects on all
# that it knows: nearly a second
_MLLIB = ("spark-mllib_", "breeze_", "spire_", "cats-kernel_", "algebra_", "arpack_combined_all-")
_HIVE = (
    "spark-hive", "hive-exec-", "hive-metastore-", "hive-service-rpc-", "datanucleus-", "derby-",
)  # fmt: skip
_OMITTED = (*_MLLIB, *_HIVE, "spark-connect_")
_FIRST = "slf4j-api-"  # Spark's launcher puts it before the others
# what Spark's launcher gives to each JVM: JavaModuleOptions.java
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_MODULES = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
_POLL_S = 0.01
_STOP_S = 10


@dataclass(frozen=True, slots=True)
class JvmSettings:
    """`heap`: as Java takes it, such as 2g. `class_path`: before Spark's jars.

    `submitted`: Spark's properties, if there will be a session. They show in the command line.
    """

    heap: str
    class_path: Sequence[str]
    java_options: Sequence[str]
    submitted: Mapping[str, str] | None = None
    library_path: str | None = None


class Jvm:
    """A JVM that has been started; it ends when this process does."""

    def __init__(self, settings: JvmSettings, log: Path | None = None) -> None:
        """`log`: the file that stdout and stderr are added to, if any."""
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        self._folder = tempfile.TemporaryDirectory(prefix="rejoin-jvm-")
        self._connection = Path(self._folder.name, "connection")
        variables = _variables()
        given = {
            "CLASSPATH": ":".join(_class_path(settings.class_path, variables)),
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._connection),
            **({"LD_LIBRARY_PATH": library} if (library := settings.library_path) else {}),
        }
        with Path(log or os.devnull).open("ab") as output:
            self._process = subprocess.Popen(
                [java(), *_arguments(settings)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,  # so that Ctrl-C reaches this process only
                env=variables | given,
            )

    def gateway(self) -> Any:
        """Py4J's way into the JVM, once it is up; raises ConfigError if it has ended instead."""
        try:
            while not self._connection.exists():
                if self._process.poll() is not None:
                    see = f"; see {self._log}" if self._log else ""
                    raise ConfigError(
                        "SPARK_NOT_STARTED",
                        f"the JVM ended with {self._process.returncode} as it started{see}",
                        hint="it has to be Java 17 or newer, on the PATH or in JAVA_HOME",
                    )
                time.sleep(_POLL_S)
            port, secret = _read_connection(self._connection.read_bytes())
        finally:
            self._folder.cleanup()
        connect: Any = launch_gateway
        found = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
        os.environ.update(found)  # noqa: TID251 - this is how PySpark is told
        try:
            gateway = connect()
        finally:
            for name in found:
                del os.environ[name]  # noqa: TID251
        gateway.proc = self._process
        return gateway

    def kill(self) -> None:
        """End it at once, unless it has ended."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def _read_connection(told: bytes) -> tuple[int, str]:
    """The port and the secret, as PythonGatewayServer.scala writes them."""
    port, length = struct.unpack_from(">ii", told)
    return port, told[8 : 8 + length].decode()


def close(gateway: Any, within_s: int = _STOP_S) -> None:
    """End the JVM; after `within_s` seconds it is killed."""
    process = gateway.proc
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process.stdin.close()  # the JVM ends when its stdin closes
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def class_path(first: Iterable[str]) -> list[str]:
    """The whole class path of a JVM that has `first` before Spark's jars."""
    return _class_path(first, _variables())


def _class_path(first: Iterable[str], variables: Mapping[str, str]) -> list[str]:
    jars = [jar for jar in spark_jars() if not jar.name.startswith(_OMITTED)]
    jars.sort(key=lambda jar: (not jar.name.startswith(_FIRST), jar.name))
    of_hadoop = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
    last = [variables[name] for name in of_hadoop if variables.get(name)]
    return [*first, variables["SPARK_CONF_DIR"], *map(str, jars), *last]


def _arguments(settings: JvmSettings) -> list[str]:
    options = [f"-Xmx{settings.heap}", *settings.java_options, *_MODULES]
    if settings.submitted is None:
        return [*options, _GATEWAY]
    submitted = [("--conf", f"{name}={value}") for name, value in settings.submitted.items()]
    return [*options, _SUBMIT, *(word for pair in submitted for word in pair), "pyspark-shell"]


def _variables() -> dict[str, str]:
    """The environment that Spark's scripts make, with that of spark-env.sh if there is one."""
    variables = dict(os.environ)  # noqa: TID251 - the JVM inherits it
    variables.setdefault("SPARK_HOME", str(_SPARK_HOME))
    variables.setdefault("SPARK_CONF_DIR", f"{variables['SPARK_HOME']}/conf")
    script = Path(variables["SPARK_CONF_DIR"], "spark-env.sh")
    if script.is_file():
        read = ["bash", "-c", f"set -a; . {shlex.quote(str(script))}; env -0"]
        found = subprocess.run(read, env=variables, stdout=subprocess.PIPE, check=True, text=True)
        variables |= dict(line.split("=", 1) for line in found.stdout.split("\0") if line)
    return variables | {
        "SPARK_ENV_LOADED": "1",
        "SPARK_SCALA_VERSION": _SCALA,
        "SPARK_CONNECT_MODE": "0",
        "PYTHONHASHSEED": "0",
    }
