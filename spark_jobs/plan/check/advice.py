"""What to do about a plan, each with the line to add to the job.

Warnings come from where the plan is made; what only its finished nodes show is found here.
"""

from collections.abc import Iterator

from spark_jobs.options.settings import IDLE_SETTINGS, REAL_TIME, DeclaredSettings
from spark_jobs.plan.nodes.parts import FIRST_FORWARD, Advice, Debezium, and_words
from spark_jobs.plan.nodes.physical import (
    BUILD_SIDE,
    IntervalJoin,
    KafkaScan,
    KafkaSink,
    Normalize,
    Physical,
    Stateful,
    TemporalJoin,
)
from spark_jobs.plan.nodes.walk import idle_timeouts, scans, stateful_nodes

WIDE = 16  # a stored row of so many columns is worth advice


def advise(root: Physical) -> Iterator[Advice]:
    """All advice on one query."""
    yield from _idle_partitions(root)
    yield from _late_rows(root)
    yield from _normalised(root)
    yield from _wide_rows(root)
    yield from _bad_records(root)


def real_time(root: Physical, settings: DeclaredSettings) -> Iterator[Advice]:
    """What real-time mode means for this query."""
    if settings.mode != REAL_TIME or not isinstance(root, KafkaSink):
        return
    if root.guarantee == "exactly-once":
        yield Advice(
            "real-time mode commits results every"
            f" {settings.commit_ms} ms ('rejoin.real-time.commit-interval'), exactly once"
        )
        idle, why = "rejoin.real-time.watermark-interval", "watermarks come with each commit"
    else:
        yield _repeated(root, settings)
        idle = "rejoin.real-time.commit-interval"
        why = f"{root.table} is written at least once, without transactions"
    if idle in settings.given:
        yield Advice(f"SET '{idle}' has no effect here: {why}")
    for key in ("rejoin.trigger-interval", "rejoin.max-offsets-per-trigger"):
        if key in settings.given:
            yield Advice(f"SET '{key}' has no effect in real-time mode: nothing waits there")


def _repeated(root: KafkaSink, settings: DeclaredSettings) -> Advice:
    again = f"after a failure it writes those of up to {settings.epoch_ms // 1000} s again"
    if root.mode == "upsert":
        ends = f"{again}, under the same keys: readers end with the same rows"
    else:
        ends = f"{again}, so that readers of {root.table} find them twice"
    return Advice(
        f"real-time mode writes results before their epoch is committed (at-least-once); {ends}",
        is_warning=root.mode != "upsert",
    )


def idle_settings(settings: DeclaredSettings) -> Iterator[Advice]:
    """Flink's settings that do nothing here, so that nobody relies on them."""
    for key in settings.given:
        if idle := IDLE_SETTINGS.get(key):
            yield Advice(f"SET '{key}' has no effect in rejoin: {idle.instead}")


def _idle_partitions(root: Physical) -> Iterator[Advice]:
    """A partition that has no records and no idle timeout holds back everything."""
    tables = {topic.index: scan.table for scan in scans(root) for topic in scan.topics}
    waiting = dict.fromkeys(
        tables[topic]
        for topic, ms in sorted(idle_timeouts(root).items())
        if topic < FIRST_FORWARD and not ms
    )
    if waiting:
        yield Advice(
            f"a partition of {and_words(waiting)} without records holds the watermark back, and "
            "every result that waits for it; say after how long it no longer counts",
            (
                "'scan.watermark.idle-timeout' = '1 min'  -- in WITH, or for all tables:",
                "SET 'table.exec.source.idle-timeout' = '1 min';",
            ),
        )


def _late_rows(root: Physical) -> Iterator[Advice]:
    for node in stateful_nodes(root):
        late = _late_text(node)
        if late and node.output.late_topic is None:
            yield Advice(
                f"{late} are dropped and only counted; they can go to a topic",
                ("SET 'rejoin.late.topic' = 'late-rows';",),
            )
            return


def _late_text(node: Stateful) -> str | None:
    """Which rows the operator drops for being late, where it can send them to a topic."""
    match node.machine:
        case TemporalJoin(time="event", late_probe="drop"):
            return f"rows of {_probe_tables(node)} that come behind the watermark"
        case IntervalJoin(changes=True):
            return "changes of rows whose window has closed"
        case _:
            return None


def _normalised(root: Physical) -> Iterator[Advice]:
    """Complete old rows in the events need not be kept a second time."""
    for node in stateful_nodes(root):
        for scan in node.inputs if isinstance(node.machine, Normalize) else ():
            if isinstance(scan, KafkaScan) and _could_trust(scan.debezium):
                yield Advice(
                    f"each row of {scan.table} is kept once more, to know what a change replaces; "
                    "not so if the database sends complete old rows (REPLICA IDENTITY FULL)",
                    ("'rejoin.debezium.replica-identity' = 'full'  -- in WITH",),
                )


def _could_trust(events: Debezium | None) -> bool:
    """Whether nothing but the row before a change is what the normaliser is for."""
    if events is None or events.full_before or events.unwrapped:
        return False
    return not events.positions and not events.retracts_on_truncate


def _wide_rows(root: Physical) -> Iterator[Advice]:
    for node in stateful_nodes(root):
        for scan in node.inputs:
            if isinstance(scan, KafkaScan) and len(scan.row) >= WIDE:
                yield Advice(
                    f"{len(scan.row)} columns of each row of {scan.table} are kept in state, "
                    "because the query reads them: name the columns that the result needs",
                    (f"SELECT {scan.table}.{scan.row[0].name}, ...  -- instead of *",),
                )


def _bad_records(root: Physical) -> Iterator[Advice]:
    stopping = dict.fromkeys(scan.table for scan in scans(root) if scan.on_error == "fail")
    if stopping:
        yield Advice(
            f"one record of {and_words(stopping)} that cannot be read stops the job; it can go to "
            "a topic instead, from where 'rejoin dlq' repairs it",
            (f"'rejoin.dead-letter.topic' = '{next(iter(stopping))}.dead'  -- in WITH",),
        )


def _probe_tables(join: Stateful) -> str:
    return and_words(s.table for i in join.inputs if i.side != BUILD_SIDE for s in scans(i))
