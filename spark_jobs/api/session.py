"""Checks and prepares a Spark session that the user created, so that a job can run in it."""

from collections.abc import Iterator, Mapping
from importlib.metadata import version

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_jobs.errors import ConfigError
from spark_jobs.kernel.build import connector_jars, kernel_jar
from spark_jobs.kernel.calls import is_stopped, jar_of, setting
from spark_jobs.options.spark import EXECUTOR_REPORTS, PLUGINS, has_executors
from spark_jobs.settings import JobSettings, resolve_all
from spark_jobs.streaming.session import REAL_TIME_DEFAULTS, session_options

_KERNEL = "org.apache.spark.sql.rejoin.Kernel"
# one class of each jar that a job needs besides the kernel
_CONNECTOR = {
    "Spark's Kafka connector": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "its token provider": "org.apache.spark.kafka010.KafkaTokenUtil",
    "Kafka's client": "org.apache.kafka.clients.producer.KafkaProducer",
    "commons-pool2": "org.apache.commons.pool2.impl.GenericKeyedObjectPool",
}
_HINT = (
    "use SparkSession.builder.config(map=rejoin.session_conf()) in a process without a session:"
    " these settings cannot be changed in a running JVM"
)


def session_conf() -> dict[str, str]:
    """The settings that a session needs to run jobs; compiles the kernel if necessary.

    Everything else that a job needs (RocksDB, checkpoint format, time zone, ...) is set in a
    separate session that shares your Spark application.
    """
    jars = [str(jar) for jar in (kernel_jar(), *connector_jars())]
    return {
        "spark.jars": ",".join(jars),
        "spark.driver.extraClassPath": ":".join(jars),
        "spark.speculation": "false",
        PLUGINS: EXECUTOR_REPORTS,
        **REAL_TIME_DEFAULTS,
    }


def session(name: str = "rejoin", conf: Mapping[str, str] | None = None) -> SparkSession:
    """The existing session, or a new one, checked to be able to run jobs.

    Raises:
        ConfigError: the existing session lacks settings or jars.
    """
    builder = SparkSession.builder.appName(name).config(map={**session_conf(), **(conf or {})})
    found = builder.getOrCreate()
    check_session(found)
    return found


def check_session(spark: SparkSession) -> None:
    """Raises ConfigError with everything that the session lacks."""
    if not isinstance(spark, SparkSession):  # for example one of Spark Connect
        kind = f"{type(spark).__module__}.{type(spark).__qualname__}"
        raise ConfigError(
            "SESSION_UNFIT",
            f"{kind} is no classic SparkSession: the kernel has to run in the driver's JVM",
            "start the job where the driver runs; rejoin.session() creates such a session",
        )
    if is_stopped(spark):
        raise ConfigError("SESSION_UNFIT", "the Spark session is stopped", "create another one")
    if problems := list(_problems(spark)):
        text = "; ".join(problems)
        raise ConfigError("SESSION_UNFIT", f"the Spark session cannot run a job: {text}", _HINT)


def job_session(spark: SparkSession, settings: JobSettings) -> SparkSession:
    """A new session of the same application with the job's settings; `spark` is not changed.

    Raises:
        ConfigError: the job sets a property that the running application has otherwise.
    """
    own = spark.newSession()
    options = resolve_all(session_options(settings, []))
    given = {key: options.pop(key) for key in settings.spark_properties}
    for key, value in options.items():
        if key.startswith("spark.sql."):
            own.conf.set(key, value)
    fixed = [key for key, value in given.items() if not _takes(own, key, value)]
    if others := [key for key in fixed if setting(spark, key) != given[key]]:
        raise ConfigError(
            "SESSION_UNFIT",
            f"the job sets {', '.join(others)}, which a running session cannot change",
            "give the session these properties when it is built",
        )
    return own


def _takes(session: SparkSession, key: str, value: str) -> bool:
    """Set a property, if a session can while its application runs."""
    if not key.startswith("spark.sql."):
        return False
    try:
        session.conf.set(key, value)
    except AnalysisException:
        return False
    return True


def master_of(spark: SparkSession) -> str:
    return str(spark.sparkContext.master)


def _problems(spark: SparkSession) -> Iterator[str]:
    expected = version("pyspark")
    if spark.version != expected:
        yield f"it is Spark {spark.version}, the kernel is compiled for {expected}"
    found = jar_of(spark, _KERNEL)
    if found is None:
        yield f"{kernel_jar()} is not on the driver's class path"
    elif found.read_bytes() != kernel_jar().read_bytes():
        yield f"it has the kernel of another release, {found} instead of {kernel_jar()}"
    for name, type_ in _CONNECTOR.items():
        if jar_of(spark, type_) is None:
            yield f"{name} ({type_}) is not on the driver's class path"
    if setting(spark, "spark.speculation").lower() == "true":
        yield "'spark.speculation' is true: two attempts of a task would fence each other's writer"
    if has_executors(master_of(spark)) and EXECUTOR_REPORTS not in setting(spark, PLUGINS):
        yield f"'{PLUGINS}' lacks {EXECUTOR_REPORTS}: the driver would not learn what executors do"
