"""The effective settings of a job: from the command line, SET statements and defaults.

Only this module reads environment variables. Settings that change the plan (watermark policy, idle
timeout, time zone) belong to the planner; this module has those that change how a job runs.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from spark_jobs.errors import ConfigError
from spark_jobs.options.kinds import REFERENCE
from spark_jobs.options.settings import REAL_TIME, DeclaredSettings, RestartSettings
from spark_jobs.options.spark import is_master, known_cores, parse_properties, refusals

MAX_OFFSETS = 1_000_000  # per epoch and table; limits the memory and the transaction of an epoch


class Environment(BaseSettings):
    """Settings of the machine rather than the job, from variables `REJOIN_...`."""

    model_config = SettingsConfigDict(env_prefix="REJOIN_", frozen=True, extra="ignore")

    memory_mb: int = Field(
        default=0, ge=0, description="heap of the driver's JVM; 0: an eighth of the memory"
    )
    state_memory_mb: int = Field(
        default=0,
        ge=0,
        description="memory for state outside the heap, RocksDB's included; 0: automatic",
    )
    master: str = Field(
        default="", description="Spark master; empty: local, a thread per core of the job"
    )
    spark_properties: Path | None = Field(
        default=None, description="file of Spark's properties, as spark-defaults.conf"
    )
    work_dir: Path = Field(default=Path(".rejoin"), description="default folder of all jobs")
    class_archive: Literal["use", "make", "off"] = Field(
        default="use", description="archive of loaded classes for a faster start"
    )
    spark_log_level: Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG"] = "ERROR"


class ExecutorPod(BaseSettings):
    """What Spark says to an executor in a pod of Kubernetes, in variables `SPARK_...`."""

    model_config = SettingsConfigDict(env_prefix="SPARK_", frozen=True, extra="ignore")

    driver_url: str
    executor_id: str
    executor_cores: str
    executor_memory: str
    executor_pod_ip: str
    executor_pod_name: str
    application_id: str
    resource_profile_id: str
    classpath: str = ""
    executor_library_path: str = ""
    java_home: str = Field(default="", validation_alias="JAVA_HOME")
    java_options: tuple[str, ...]  # SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1 ...


@dataclass(frozen=True, slots=True)
class Overrides:
    """Options of the command line; None leaves the job's own setting."""

    checkpoint: str | None = None
    status_dir: Path | None = None
    sidecar_port: int | None = None
    sidecar: bool = True
    epoch_written: Sequence[str] = ()
    master: str | None = None
    spark_properties: Path | None = None


@dataclass(frozen=True, slots=True)
class RestartStrategy:
    """Flink's restart strategy: up to `attempts` restarts, the first after `delay_s`.

    Each further delay is `multiplier` times the one before. `reset_s` without a failure resets the
    count.
    """

    attempts: int
    delay_s: float = 0.0
    longest_s: float = 0.0
    multiplier: float = 1.0
    jitter: float = 0.0
    reset_s: float = float("inf")

    @classmethod
    def read(cls, declared: RestartSettings) -> Self:
        """Read it from SET statements, whose values the binder has checked."""
        match declared.type:
            case "exponential-delay":
                return cls(
                    attempts=declared.attempts_before_reset,
                    delay_s=declared.initial_backoff_ms / 1000,
                    longest_s=declared.max_backoff_ms / 1000,
                    multiplier=declared.backoff_multiplier,
                    jitter=declared.jitter_factor,
                    reset_s=declared.reset_backoff_ms / 1000,
                )
            case "fixed-delay":
                delay_s = declared.fixed_delay_ms / 1000
                return cls(declared.fixed_attempts, delay_s, delay_s)
            case "none" | "off" | "disable":
                return cls(attempts=0)


@dataclass(frozen=True, slots=True)
class RealTime:
    """Spark's real-time mode: how long an epoch lasts, how often watermarks come at most.

    `warm_up_epochs`: so many of the first epochs are short. `commit_ms`: how long results of an
    exactly-once sink wait for their transaction; 0 for a sink without transactions.
    """

    epoch_ms: int
    marks_ms: int
    warm_up_epochs: int
    commit_ms: int


@dataclass(frozen=True, slots=True)
class JobSettings:
    """How a job runs. `parallelism` None is that of the checkpoint, else one task per core.

    `master` is empty for local threads. `spark_properties` are the user's, with references in them:
    SET statements of the job, and a file, which wins. `real_time` is None for micro-batches.
    `threads`: of a local Spark, where the job needs more than one per core.
    """

    name: str
    checkpoint: str
    status_dir: Path
    sidecar_port: int | None
    sidecar: bool
    trigger_interval_ms: int
    max_offsets_per_trigger: int
    parallelism: int | None
    key_groups: int
    environment: Environment
    restarts: RestartStrategy
    goes_on_after_data_loss: bool = False
    ledger_heartbeat_ms: int = 600_000
    epoch_written: Sequence[str] = ()
    master: str = ""
    spark_properties: Mapping[str, str] = field(default_factory=dict)
    real_time: RealTime | None = None
    threads: int | None = None

    def cores(self) -> int:
        """Tasks of a stateful operator; raises ConfigError if nothing says how many."""
        cores = self.parallelism or known_cores(
            self.master, self.spark_properties, available_cores()
        )
        if cores is None:
            raise ConfigError(
                "PARALLELISM_UNKNOWN",
                f"how many cores {self.master} has is known only once Spark runs there",
                hint="SET 'rejoin.parallelism'; a checkpoint keeps it until `rejoin rescale`",
            )
        return cores

    def table(self) -> list[tuple[str, str]]:
        """Names and values to show; none of them is secret."""
        tasks = self.parallelism or f"{self.cores()} (one per core at the first start)"
        return [
            ("pipeline.name", self.name),
            ("rejoin.checkpoint", self.checkpoint),
            *self._pace(),
            ("rejoin.parallelism", str(tasks)),
            ("rejoin.key-groups", f"{self.key_groups} (the most that rejoin.parallelism can be)"),
            ("spark.master", self._where()),
        ]

    def _where(self) -> str:
        if self.real_time is not None and not self.master and self.threads is None:
            return "local, with a thread for each task of the query"
        return self.spark_master()

    def _pace(self) -> list[tuple[str, str]]:
        if self.real_time is None:
            return [
                ("rejoin.trigger-interval", f"{self.trigger_interval_ms} ms"),
                ("rejoin.max-offsets-per-trigger", str(self.max_offsets_per_trigger)),
            ]
        return [
            ("rejoin.mode", "real-time"),
            ("rejoin.real-time.batch-interval", f"{self.real_time.epoch_ms} ms"),
            ("rejoin.real-time.watermark-interval", f"{self.real_time.marks_ms} ms"),
            ("rejoin.real-time.warm-up-epochs", str(self.real_time.warm_up_epochs)),
            ("rejoin.real-time.commit-interval", f"{self.real_time.commit_ms} ms"),
        ]

    def spark_master(self) -> str:
        return self.master or f"local[{self.threads or self.cores()}]"


def read_environment() -> Environment:
    try:
        return Environment()
    except ValidationError as error:
        raise _invalid("REJOIN_", error) from error


def read_executor_pod() -> ExecutorPod:
    try:
        return ExecutorPod.model_validate({"java_options": _numbered("SPARK_JAVA_OPT_")})
    except ValidationError as error:
        raise _invalid("SPARK_", error) from error


def _invalid(prefix: str, error: ValidationError) -> ConfigError:
    problems = [f"{prefix}{e['loc'][0]}".upper() + f": {e['msg']}" for e in error.errors()]
    return ConfigError("SETTING_INVALID", "; ".join(problems))


def _numbered(prefix: str) -> tuple[str, ...]:
    """The values of variables that a prefix and a number name, in the order of the numbers."""
    variables = os.environ.items()  # noqa: TID251
    found = {name.removeprefix(prefix): v for name, v in variables if name.startswith(prefix)}
    return tuple(found[number] for number in sorted(found, key=int))


def epoch_words(given: Sequence[str], queries: Sequence[str]) -> dict[str, Literal["yes", "no"]]:
    """Parse the values of --epoch-written: `yes` or `no` for a single query, else `query=yes`.

    Raises ConfigError for anything else, because rejoin must not guess which query is meant.
    """
    answers: dict[str, Literal["yes", "no"]] = {}
    for text in given:
        name, _, word = text.rpartition("=")
        query = name or (queries[0] if len(queries) == 1 else "")
        if query not in queries or query in answers or word not in ("yes", "no"):
            raise ConfigError(
                "EPOCH_WRITTEN",
                f"--epoch-written {text} is not yes or no for exactly one query",
                hint=f"give {' or '.join(f'{q}=yes' for q in queries)}, or =no",
            )
        answers[query] = "yes" if word == "yes" else "no"
    return answers


def job_settings(
    declared: DeclaredSettings, file_stem: str, overrides: Overrides, environment: Environment
) -> JobSettings:
    """The effective settings; the binder has checked the declared values already."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", declared.job_name or file_stem).strip("-.") or "job"
    home = environment.work_dir / name
    properties_file = overrides.spark_properties or environment.spark_properties
    settings = JobSettings(
        name=name,
        checkpoint=_absolute(
            overrides.checkpoint or declared.checkpoint or str(home / "checkpoint")
        ),
        status_dir=overrides.status_dir or (home / "status").resolve(),
        sidecar_port=overrides.sidecar_port,
        sidecar=overrides.sidecar,
        trigger_interval_ms=declared.trigger_interval_ms,
        max_offsets_per_trigger=declared.max_offsets_per_trigger or MAX_OFFSETS,
        parallelism=declared.parallelism,
        key_groups=declared.key_groups,
        environment=environment,
        restarts=RestartStrategy.read(declared.restarts),
        goes_on_after_data_loss=declared.on_data_loss == "continue",
        ledger_heartbeat_ms=declared.ledger_heartbeat_ms,
        epoch_written=tuple(overrides.epoch_written),
        master=_master(overrides.master or environment.master),
        spark_properties={
            **declared.spark_properties,
            **({} if properties_file is None else read_spark_properties(properties_file)),
        },
        real_time=(
            RealTime(
                declared.epoch_ms, declared.marks_ms, declared.warm_up_epochs, declared.commit_ms
            )
            if declared.mode == REAL_TIME
            else None
        ),
    )
    if settings.cores() > settings.key_groups:
        raise ConfigError(
            "PARALLELISM_TOO_HIGH",
            f"'rejoin.parallelism' is {settings.cores()} and 'rejoin.key-groups' only "
            f"{settings.key_groups}: some tasks would never get a key",
        )
    return settings


def read_spark_properties(path: Path) -> dict[str, str]:
    """Spark's properties in a file; raises ConfigError for what rejoin cannot run with."""
    found, others = parse_properties(read_sql(path))
    problems = [f"line {number} is no property of Spark" for number in others]
    if problems := [*problems, *refusals(found)]:
        raise ConfigError("SPARK_PROPERTY_REFUSED", f"{path}: {'; '.join(problems)}")
    return found


def _master(text: str) -> str:
    if not is_master(text):
        raise ConfigError(
            "MASTER_UNKNOWN",
            f"'{text}' is no Spark master",
            hint="spark://HOST:PORT, k8s://URL, local-cluster[EXECUTORS,CORES,MB] or local[N]",
        )
    return text


def _absolute(location: str) -> str:
    """An absolute path, as the JVM needs it; a URI such as `s3a://...` is kept."""
    is_address = re.match(r"[a-z][a-z0-9+.-]*:", location) is not None
    return location if is_address else str(Path(location).resolve())


def read_sql(path: Path) -> str:
    """The text of a job file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigError("FILE_UNREADABLE", f"cannot read {path}: {cause}") from cause


def available_cores() -> int:
    """Cores that this process may use; in a container fewer than the machine has."""
    affine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = Path("/sys/fs/cgroup/cpu.max")
    allowed = quota_cores(quota.read_text()) if quota.is_file() else None
    return min(affine or 1, allowed or affine or 1)


def quota_cores(text: str) -> int | None:
    """Whole cores of a cgroup's `cpu.max`, at least one; None without a limit.

    >>> quota_cores("250000 100000"), quota_cores("50000 100000"), quota_cores("max 100000")
    (2, 1, None)
    """
    quota, _, period = text.strip().partition(" ")
    return max(int(quota) // int(period), 1) if quota.isdigit() and period.isdigit() else None


def machine_memory_mb() -> int:
    """Memory of the container if it has a limit, else of the machine."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.is_file() else "max"
    return min(total, int(text) // 2**20) if text.isdigit() else total


def resolve_references(value: str) -> SecretStr:
    """Replace `${env:NAME}` and `${file:PATH}`; the result is secret and must not be printed.

    >>> resolve_references("plain").get_secret_value()
    'plain'
    """
    return SecretStr(REFERENCE.sub(_look_up, value))


def resolve_all(options: Mapping[str, str]) -> dict[str, str]:
    """Option values with references replaced, for creating a client; they must not be printed.

    Inside a JAAS entry, replaced values are escaped for its quotes (the kernel's References.scala
    does the same).
    """
    return {name: _resolve_option(name, value) for name, value in options.items()}


def _resolve_option(name: str, value: str) -> str:
    if name.endswith("sasl.jaas.config") and REFERENCE.sub("", value):
        quoted = str.maketrans({"\\": r"\\", '"': r"\""})
        return REFERENCE.sub(lambda match: _look_up(match).translate(quoted), value)
    return REFERENCE.sub(_look_up, value)


def _look_up(match: re.Match[str]) -> str:
    kind, _, name = match[0][2:-1].partition(":")
    if kind == "env":
        found = os.path.expandvars(reference := f"${{{name}}}")
        if found == reference:
            raise ConfigError("REFERENCE_UNKNOWN", f"environment variable {name} is not set")
        return found
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigError("REFERENCE_UNKNOWN", f"cannot read {name}: {cause}") from cause
