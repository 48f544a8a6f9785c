"""Where a checkpoint is, on a disk or on S3: the jars and Spark's settings that it needs."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.errors import ConfigError, StateError
from spark_jobs.kernel.build import store_jars
from spark_jobs.kernel.calls import has_file_system
from spark_jobs.settings import resolve_all
from spark_jobs.streaming.failure import JavaError, java_text

_S3 = "s3a"
_AMAZON = "software.amazon.awssdk.auth.credentials"
_S3A = "org.apache.hadoop.fs.s3a"
# the first that finds something is used: properties, environment, web identity, file, machine
_CREDENTIALS = (
    f"{_S3A}.TemporaryAWSCredentialsProvider",
    f"{_S3A}.SimpleAWSCredentialsProvider",
    f"{_AMAZON}.EnvironmentVariableCredentialsProvider",
    f"{_AMAZON}.WebIdentityTokenFileCredentialsProvider",
    f"{_AMAZON}.ProfileCredentialsProvider",
    f"{_S3A}.auth.IAMInstanceCredentialsProvider",
)
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_DISK_SETTINGS = {_FILE_MANAGER: "org.apache.spark.sql.rejoin.checkpoint.DiskFiles"}
_S3_SETTINGS = {
    _FILE_MANAGER: "org.apache.spark.sql.rejoin.checkpoint.ObjectStoreFiles",
    # S3 compares checksums of its own; these would be as many files again
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.hadoop.fs.s3a.aws.credentials.provider": ",".join(_CREDENTIALS),
    # files are read once, from the beginning; the default's library is not installed
    "spark.hadoop.fs.s3a.input.stream.type": "classic",
    # no look for folders on the way to each file
    "spark.hadoop.fs.s3a.performance.flags": "create,delete,mkdir",
    # else uploads go through a second HTTP client, made for an older Netty than Spark's
    "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
}
# Maven artifacts with the file systems of other stores, of the Hadoop that PySpark brings
_CONNECTORS = {
    "abfs": "org.apache.hadoop:hadoop-azure:3.5.0",
    "abfss": "org.apache.hadoop:hadoop-azure:3.5.0",
    "gs": "org.apache.hadoop:hadoop-gcp:3.5.0",
}


def jars_for(checkpoint: str) -> list[Path]:
    """What has to be on the class path for a checkpoint there, besides Spark's own jars."""
    return store_jars() if _scheme(checkpoint) == _S3 else []


def settings_for(checkpoint: str) -> Mapping[str, str]:
    """Defaults that a user's properties may change."""
    match _scheme(checkpoint):
        case None | "file":
            return _DISK_SETTINGS
        case "s3a":
            return _S3_SETTINGS
        case _:
            return {}


def properties_for(given: Mapping[str, str], *checkpoints: str) -> dict[str, str]:
    """What a JVM without a Spark session needs to read them; `given` are the user's, which win.

    Raises:
        ConfigError: a reference of the user's leads nowhere.
    """
    on_s3 = any(_scheme(each) == _S3 for each in checkpoints)
    return {**(_S3_SETTINGS if on_s3 else {}), **resolve_all(given)}


@contextmanager
def store_failures(code: str, failed: str, hint: str) -> Iterator[None]:
    """Raise what a file system throws as a StateError; `failed` says what could not be done."""
    try:
        yield
    except JavaError as cause:
        raise StateError(code, f"{failed}: {java_text(cause)}", hint) from cause


def reading(checkpoint: str) -> AbstractContextManager[None]:
    """Raise what the file system of a checkpoint throws as a StateError."""
    return store_failures(
        "CHECKPOINT_UNREADABLE",
        f"{checkpoint} cannot be read",
        "address and credentials of an object store are in --spark-properties or the "
        "environment (docs/deployment.md)",
    )


def check_store(spark: SparkSession, checkpoint: str) -> None:
    """Raise ConfigError if nothing on Spark's class path reads and writes such a location."""
    scheme = _scheme(checkpoint)
    if scheme is None or has_file_system(spark, scheme):
        return
    hint = "write s3a://... instead" if scheme in ("s3", "s3n") else _how_to_add(scheme)
    raise ConfigError(
        "CHECKPOINT_STORE_UNKNOWN", f"{checkpoint}: Spark has no file system for {scheme}://", hint
    )


def _how_to_add(scheme: str) -> str:
    jar = _CONNECTORS.get(scheme, "the connector's jars")
    return f"add {jar} with 'spark.driver.extraClassPath' (docs/deployment.md)"


def is_on_disk(checkpoint: str) -> bool:
    """Whether a checkpoint is in a folder that this machine sees.

    >>> is_on_disk("/data/checkpoint"), is_on_disk("file:///data"), is_on_disk("s3a://bucket/ck")
    (True, True, False)
    """
    return _scheme(checkpoint) in (None, "file")


def _scheme(location: str) -> str | None:
    scheme, colon, _ = location.partition(":")
    return scheme if colon and "/" not in scheme else None
