"""Every SET key: its values, its default, and what to use instead of those refused here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from zoneinfo import available_timezones

from spark_jobs.options.declared import group, read_options, table_of
from spark_jobs.options.kinds import (
    choice,
    duration,
    enum,
    flag,
    integer,
    number,
    option,
    parse_duration_ms,
    share,
    text,
)
from spark_jobs.options.spark import is_property

REAL_TIME = "real-time"
LEAST_EPOCH_MS = 5000
"""Spark's own limit for a batch of its real-time mode."""

_ZONE_OFFSET = re.compile(r"(GMT|UTC)?[+-]\d{1,2}(:\d{2})?")


def _at_least(value: str, least_ms: int) -> int | None:
    found = parse_duration_ms(value)
    return None if found is None or found < least_ms else found


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartSettings:
    """When a query that failed for a passing reason starts again."""

    type: OneOf["none", "off", "disable", "fixed-delay", "exponential-delay"] = choice(
        "restart-strategy.type",
        "when a query that failed for a passing reason starts again",
        "exponential-delay",
    )
    fixed_attempts: int = integer(
        "restart-strategy.fixed-delay.attempts", "most restarts of a query", "10"
    )
    fixed_delay_ms: int = duration(
        "restart-strategy.fixed-delay.delay", "wait before each restart", "1 s"
    )
    attempts_before_reset: int = integer(
        "restart-strategy.exponential-delay.attempts-before-reset-backoff",
        "most restarts in a row",
        "20",
    )
    initial_backoff_ms: int = duration(
        "restart-strategy.exponential-delay.initial-backoff", "wait before the first restart", "1 s"
    )
    max_backoff_ms: int = duration(
        "restart-strategy.exponential-delay.max-backoff", "longest wait", "1 min"
    )
    backoff_multiplier: float = number(
        "restart-strategy.exponential-delay.backoff-multiplier",
        "factor by which each wait is longer than the one before",
        "1.5",
        least=1,
    )
    jitter_factor: float = number(
        "restart-strategy.exponential-delay.jitter-factor",
        "share of a wait by which it is longer or shorter at random",
        "0.1",
        most=1,
    )
    reset_backoff_ms: int = duration(
        "restart-strategy.exponential-delay.reset-backoff-threshold",
        "after this long without a failure, restarts are counted from 0 again",
        "10 min",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSettings:
    """What the SET statements of a job say, and the defaults where they say nothing.

    `given` are the statements' own texts.
    """

    job_name: str | None = text(
        "pipeline.name",
        "name of the job, by default its file's; the one at the first start begins the names of "
        "ledgers and transactional ids",
    )
    time_zone: str = option(
        "table.local-time-zone",
        "time zone in which TIMESTAMP and TIMESTAMP_LTZ meet",
        "a zone such as 'UTC' or 'Europe/Berlin'",
        lambda value: (
            value if value in available_timezones() or _ZONE_OFFSET.fullmatch(value) else None
        ),
        "UTC",
    )
    idle_timeout_ms: int = duration(
        "table.exec.source.idle-timeout",
        "a partition without records for this long holds no watermark back; 0 is never",
        "0 ms",
    )
    events_may_repeat: bool = flag(
        "table.exec.source.cdc-events-duplicate",
        "change events may come twice: rows of a PRIMARY KEY are compared with the last one",
    )
    state_ttl_ms: int = duration(
        "table.exec.state.ttl",
        "rows that were not written for this long are dropped from state; 0 is never",
        "0 ms",
    )
    min_cleanup_ms: int = duration(
        "table.exec.interval-join.min-cleanup-interval",
        "how much longer than it must an interval join keeps rows before it drops or pads them",
        "0 ms",
    )
    upsert_materialize: OneOf["auto", "none", "force"] = enum(
        "table.exec.sink.upsert-materialize",
        "all rows of a sink key are kept: where the query has another key, never, always",
        "auto | none | force",
    )
    type_length_enforcer: OneOf["ignore", "trim_pad"] = enum(
        "table.exec.sink.type-length-enforcer",
        "lengths of a sink's CHAR(n) and VARCHAR(n): ignored, or texts are cut off and CHAR(n) is"
        " filled with blanks",
        "ignore | trim_pad",
    )
    requires_on_conflict: bool = flag(
        "table.exec.sink.require-on-conflict",
        "an INSERT whose query has another key than the sink must say ON CONFLICT",
    )
    mini_batch: bool = flag(
        "table.exec.mini-batch.enabled",
        "ROW_NUMBER() = 1 by event time emits at once and corrects itself, as in Flink's"
        " mini-batch",
    )
    multi_join: bool = flag(
        "rejoin.multi-join",
        "three or more inputs that are joined by one key are joined by one operator",
        "true",
    )
    input_faults: OneOf["repair", "trust"] = choice(
        "rejoin.input-faults",
        "changes that no changelog can hold, such as a second +I of a primary key: repaired, or"
        " trusted as Flink does",
        "repair",
    )
    min_cleanup_rule: OneOf["zero", "half"] = choice(
        "rejoin.interval-join.min-cleanup-rule",
        "least cleanup interval of an interval join: none, or half of its window",
        "zero",
    )
    bootstrap_timeout_ms: int | None = duration(
        "rejoin.bootstrap.timeout",
        "how long the rows of a processing-time join wait for the other side's first content",
    )
    on_bootstrap_timeout: OneOf["fail", "go"] = choice(
        "rejoin.bootstrap.on-timeout",
        "after that time: the job fails, or goes on with the rows that are there",
        "fail",
    )
    late_probe: OneOf["drop", "join"] = choice(
        "rejoin.temporal.late-probe",
        "a late row at a temporal join: dropped as in Flink 2.4, or joined as in older releases",
        "drop",
    )
    late_topic: str | None = text(
        "rejoin.late.topic",
        "topic for late probe rows that an event-time temporal join drops, and for late changes of"
        " an interval join of rows that change",
    )
    dead_letter_max_share: float = share(
        "rejoin.dead-letter.max-share",
        "the job stops when more of a table's last records cannot be decoded; 1 is never",
        "0.5",
    )
    dead_letter_window: int = integer(
        "rejoin.dead-letter.window",
        "number of those last records",
        "10000",
        1,
    )
    checkpoint: str | None = text("rejoin.checkpoint", "folder of the checkpoint", "a path")
    trigger_interval_ms: int = duration(
        "rejoin.trigger-interval", "least time between two micro-batches", "200 ms"
    )
    max_offsets_per_trigger: int | None = integer(
        "rejoin.max-offsets-per-trigger", "most records of one micro-batch", least=1
    )
    parallelism: int | None = integer(
        "rejoin.parallelism", "tasks of a stateful operator, at most rejoin.key-groups", least=1
    )
    key_groups: int = integer(
        "rejoin.key-groups", "parts of the key space, fixed for a checkpoint", "128", 1
    )
    watermark_policy: OneOf["min", "max"] = choice(
        "rejoin.watermark.policy",
        "watermark of a join: the lower or the higher of its inputs",
        "min",
    )
    mode: OneOf["micro-batch", "real-time"] = choice(
        "rejoin.mode",
        "how Spark runs the query: results every epoch, exactly once; or within milliseconds, at"
        " least once unless the sink declares exactly-once",
        "micro-batch",
    )
    epoch_ms: int = option(
        "rejoin.real-time.batch-interval",
        "length of an epoch in real-time mode: how much is repeated after a failure, and how often"
        " results wait for a commit",
        "a duration of at least '5 s'",
        lambda value: _at_least(value, LEAST_EPOCH_MS),
        "2 min",
    )
    warm_up_epochs: int = integer(
        "rejoin.real-time.warm-up-epochs",
        "how many short epochs real-time mode begins with, so that the JVM has compiled what"
        " results wait for between two long ones",
        "150",
    )
    marks_ms: int = option(
        "rejoin.real-time.watermark-interval",
        "how often watermarks come while records are read in real-time mode",
        "a duration of at least '1 ms'",
        lambda value: _at_least(value, 1),
        "10 ms",
    )
    commit_ms: int = option(
        "rejoin.real-time.commit-interval",
        "how long results of an exactly-once sink wait in real-time mode for the transaction that"
        " commits them",
        "a duration of at least '1 ms'",
        lambda value: _at_least(value, 1),
        "50 ms",
    )
    on_data_loss: OneOf["fail", "continue"] = choice(
        "rejoin.on-data-loss",
        "records that are deleted before they are read, or a source topic that is created anew: the"
        " job fails, or counts them and goes on",
        "fail",
    )
    ledger_heartbeat_ms: int = duration(
        "rejoin.ledger.heartbeat-interval",
        "how often an idle exactly-once sink commits its ledger again; less than the broker's"
        " offsets.retention.minutes",
        "10 min",
    )
    restarts: RestartSettings = group(RestartSettings)
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def spark_properties(self) -> dict[str, str]:
        """Spark's own properties, which may hold references to secrets."""
        return {key: value for key, value in self.given.items() if is_property(key)}


SETTINGS = table_of(DeclaredSettings)
NOTHING_SET = DeclaredSettings()


def declared_settings(given: Mapping[str, str]) -> DeclaredSettings:
    """What these SET statements say."""
    return replace(read_options(DeclaredSettings, given), given=given)


@dataclass(frozen=True, slots=True)
class Idle:
    """A setting of Flink that changes no result: what rejoin does, whatever its value.

    `values`: those that agree with it, in lower case; none if all do.
    """

    instead: str
    values: tuple[str, ...] = ()

    def accepts(self, value: str) -> bool:
        return not self.values or value.lower() in self.values


# settings of Flink that job files bring along and that change no result here
IDLE_SETTINGS: dict[str, Idle] = {
    "parallelism.default": Idle("SET 'rejoin.parallelism'"),
    "table.exec.resource.default-parallelism": Idle("SET 'rejoin.parallelism'"),
    "pipeline.max-parallelism": Idle("SET 'rejoin.key-groups'"),
    "table.exec.mini-batch.allow-latency": Idle("SET 'rejoin.trigger-interval'"),
    "table.exec.mini-batch.size": Idle("SET 'rejoin.max-offsets-per-trigger'"),
    "execution.checkpointing.interval": Idle(
        "every batch is committed; SET 'rejoin.trigger-interval'"
    ),
    "execution.checkpointing.mode": Idle(
        "state is exactly-once; 'sink.delivery-guarantee' in the sink's WITH says the rest",
        ("exactly_once",),
    ),
    "execution.runtime-mode": Idle(
        "jobs stream; 'scan.bounded.mode' in the sources' WITH reads up to an end", ("streaming",)
    ),
    "state.backend": Idle("state is kept in RocksDB", ("rocksdb",)),
    "state.backend.type": Idle("state is kept in RocksDB", ("rocksdb",)),
    "state.backend.incremental": Idle("checkpoints hold what changed", ("true",)),
    "sql-client.execution.result-mode": Idle("results go to the sinks"),
}

# settings that Flink has: what to do instead
REFUSED_SETTINGS: dict[str, str] = {
    "table.optimizer.multi-join.enabled": "SET 'rejoin.multi-join'",
    "table.exec.sink.not-null-enforcer": "leave it out",
    "execution.checkpointing.dir": "SET 'rejoin.checkpoint'",
    "state.checkpoints.dir": "SET 'rejoin.checkpoint'",
    "restart-strategy": "SET 'restart-strategy.type'",
}
