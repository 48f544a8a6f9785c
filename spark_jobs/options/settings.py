"""Every SET key: its values, its default, and what to use instead of those refused here."""

import re
from zoneinfo import available_timezones

from spark_jobs.options.kinds import (
    Option,
    choice,
    duration,
    enum,
    flag,
    integer,
    number,
    share,
)

_ZONE_OFFSET = re.compile(r"(GMT|UTC)?[+-]\d{1,2}(:\d{2})?")

SETTINGS: dict[str, Option] = {
    "pipeline.name": Option(
        "name of the job, by default its file's; the one at the first start begins the names of "
        "ledgers and transactional ids"
    ),
    "table.local-time-zone": Option(
        "time zone in which TIMESTAMP and TIMESTAMP_LTZ meet",
        "a zone such as 'UTC' or 'Europe/Berlin'",
        "UTC",
        lambda text: text in available_timezones() or bool(_ZONE_OFFSET.fullmatch(text)),
    ),
    "table.exec.source.idle-timeout": duration(
        "a partition without records for this long holds no watermark back; 0 is never", "0 ms"
    ),
    "table.exec.source.cdc-events-duplicate": flag(
        "change events may come twice: rows of a PRIMARY KEY are compared with the last one"
    ),
    "table.exec.state.ttl": duration(
        "rows that nothing has written for this long are forgotten; 0 is never", "0 ms"
    ),
    "table.exec.interval-join.min-cleanup-interval": duration(
        "how much later than it could an interval join forgets rows and pads outer ones", "0 ms"
    ),
    "table.exec.sink.upsert-materialize": enum(
        "a list of rows per sink key: where keys differ, never, always", "auto", "none", "force"
    ),
    "table.exec.sink.require-on-conflict": flag(
        "an INSERT whose query has another key than the sink must say ON CONFLICT"
    ),
    "table.exec.mini-batch.enabled": flag(
        "ROW_NUMBER() = 1 by event time emits at once and corrects itself, as in Flink's mini-batch"
    ),
    "rejoin.multi-join": flag(
        "three or more inputs that are joined by one key are joined by one operator", "true"
    ),
    "rejoin.input-faults": choice(
        "changes that no changelog can hold, such as a second +I of a primary key: repaired, or"
        " trusted as Flink does",
        "repair",
        "trust",
        default="repair",
    ),
    "rejoin.interval-join.min-cleanup-rule": choice(
        "least cleanup interval of an interval join: none, or half of its window",
        "zero",
        "half",
        default="zero",
    ),
    "rejoin.bootstrap.timeout": duration(
        "how long the rows of a processing-time join wait for the other side's first content"
    ),
    "rejoin.bootstrap.on-timeout": choice(
        "what then: the job fails, or goes on with what is there", "fail", "go", default="fail"
    ),
    "rejoin.temporal.late-probe": choice(
        "a late row at a temporal join: dropped as in Flink 2.4, or joined as in older releases",
        "drop",
        "join",
        default="drop",
    ),
    "rejoin.late.topic": Option("topic for late probe rows that an event-time temporal join drops"),
    "rejoin.dead-letter.max-share": share(
        "the job stops when more of a table's last records cannot be decoded; 1 is never", "0.5"
    ),
    "rejoin.dead-letter.window": integer("of so many records", "10000", 1),
    "rejoin.checkpoint": Option("folder of the checkpoint", "a path"),
    "rejoin.trigger-interval": duration("least time between two micro-batches", "200 ms"),
    "rejoin.max-offsets-per-trigger": integer("most records of one micro-batch", least=1),
    "rejoin.parallelism": integer("tasks of a stateful operator", least=1),
    "rejoin.key-groups": integer("parts of the key space, fixed for a checkpoint", "128", 1),
    "rejoin.watermark.policy": choice(
        "watermark of a join: the lower or the higher of its inputs", "min", "max", default="min"
    ),
    "rejoin.mode": choice("how Spark runs the query", "micro-batch", default="micro-batch"),
    "rejoin.on-data-loss": choice(
        "records that are deleted before they are read, or a source topic that is created anew: the"
        " job fails, or counts them and goes on",
        "fail",
        "continue",
        default="fail",
    ),
    "rejoin.ledger.heartbeat-interval": duration(
        "an idle exactly-once sink commits its ledger again so often; less than the broker's"
        " offsets.retention.minutes",
        "10 min",
    ),
    "restart-strategy.type": choice(
        "when a query that failed for a passing reason starts again",
        "none",
        "off",
        "disable",
        "fixed-delay",
        "exponential-delay",
        default="exponential-delay",
    ),
    "restart-strategy.fixed-delay.attempts": integer("most restarts of a query", "10"),
    "restart-strategy.fixed-delay.delay": duration("wait before each restart", "1 s"),
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": integer(
        "most restarts in a row", "20"
    ),
    "restart-strategy.exponential-delay.initial-backoff": duration(
        "wait before the first restart", "1 s"
    ),
    "restart-strategy.exponential-delay.max-backoff": duration("longest wait", "1 min"),
    "restart-strategy.exponential-delay.backoff-multiplier": number(
        "how much longer each wait is than the one before", "1.5", least=1
    ),
    "restart-strategy.exponential-delay.jitter-factor": number(
        "by which part of itself a wait is longer or shorter at random", "0.1", most=1
    ),
    "restart-strategy.exponential-delay.reset-backoff-threshold": duration(
        "after so long without a failure restarts count anew", "10 min"
    ),
}
# settings that Flink has: what to do instead
REFUSED_SETTINGS: dict[str, str] = {
    "table.exec.mini-batch.allow-latency": "SET 'rejoin.trigger-interval'",
    "table.exec.mini-batch.size": "SET 'rejoin.max-offsets-per-trigger'",
    "table.optimizer.multi-join.enabled": "SET 'rejoin.multi-join'",
    "table.exec.resource.default-parallelism": "SET 'rejoin.parallelism'",
    "table.exec.sink.not-null-enforcer": "leave it out",
    "parallelism.default": "SET 'rejoin.parallelism'",
    "pipeline.max-parallelism": "SET 'rejoin.key-groups'",
    "execution.checkpointing.interval": "SET 'rejoin.trigger-interval': every batch is committed",
    "execution.checkpointing.mode": "set 'sink.delivery-guarantee' in the sink's WITH",
    "execution.checkpointing.dir": "SET 'rejoin.checkpoint'",
    "execution.runtime-mode": "set 'scan.bounded.mode' in the sources' WITH to read up to an end",
    "state.checkpoints.dir": "SET 'rejoin.checkpoint'",
    "state.backend": "state is kept in RocksDB: leave it out",
    "state.backend.type": "state is kept in RocksDB: leave it out",
    "restart-strategy": "SET 'restart-strategy.type'",
}
