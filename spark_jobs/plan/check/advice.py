"""What to do about a plan, each with the line to add to the job.

Warnings come from where the plan is made; what only its finished nodes show is found here.
"""

from collections.abc import Iterator

from spark_jobs.plan.nodes.parts import Advice, Debezium
from spark_jobs.plan.nodes.physical import (
    KafkaScan,
    KafkaSink,
    Normalize,
    Physical,
    Project,
    Rekey,
    Results,
    Stateful,
    TemporalJoin,
    inputs_of,
)
from spark_jobs.plan.strategy.building import FIRST_FORWARD

WIDE = 16  # columns of a stored row from which on leaving some out is worth a word


def advise(root: Physical) -> Iterator[Advice]:
    """Of one query."""
    scans = [node for node in _below(root) if isinstance(node, KafkaScan)]
    yield from _idle_partitions(root, scans)
    yield from _late_rows(root)
    yield from _normalised(root)
    yield from _wide_rows(root)
    yield from _bad_records(scans)


def _below(node: Physical) -> Iterator[Physical]:
    yield node
    for child in inputs_of(node):
        yield from _below(child)


def _stateful(root: Physical) -> Iterator[Stateful]:
    for node in _below(root):
        if not isinstance(node, KafkaSink | Results | Project | Rekey | KafkaScan):
            yield node


def _idle_partitions(root: Physical, scans: list[KafkaScan]) -> Iterator[Advice]:
    """A partition that has no records and no idle timeout holds back everything."""
    tables = {topic.index: scan.table for scan in scans for topic in scan.topics}
    heard = {
        time.topic: time.idle_timeout_ms
        for node in _stateful(root)
        for side in node.timing.inputs
        for time in side
    }
    waiting = dict.fromkeys(
        tables[topic] for topic, ms in sorted(heard.items()) if topic < FIRST_FORWARD and not ms
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
    for node in _stateful(root):
        if not isinstance(node, TemporalJoin) or node.time != "event":
            continue
        if node.late_probe == "drop" and node.output.late_topic is None:
            yield Advice(
                f"rows of {and_words(_tables(node, 0))} that come behind the watermark are dropped "
                "and only counted; they can go to a topic",
                ("SET 'rejoin.late.topic' = 'late-rows';",),
            )
            return


def _normalised(root: Physical) -> Iterator[Advice]:
    """Whoever has complete old rows need not keep them a second time."""
    for node in _stateful(root):
        for scan in node.inputs if isinstance(node, Normalize) else ():
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
    for node in _stateful(root):
        for scan in node.inputs:
            if isinstance(scan, KafkaScan) and len(scan.row) >= WIDE:
                yield Advice(
                    f"{len(scan.row)} columns of each row of {scan.table} are kept in state, "
                    "because the query reads them: name the columns that the result needs",
                    (f"SELECT {scan.table}.{scan.row[0].name}, ...  -- instead of *",),
                )


def _bad_records(scans: list[KafkaScan]) -> Iterator[Advice]:
    stopping = dict.fromkeys(scan.table for scan in scans if scan.on_error == "fail")
    if stopping:
        yield Advice(
            f"one record of {and_words(stopping)} that cannot be read stops the job; it can go to "
            "a topic instead, from where 'rejoin dlq' repairs it",
            (f"'rejoin.dead-letter.topic' = '{next(iter(stopping))}.dead'  -- in WITH",),
        )


def _tables(node: Stateful, side: int) -> list[str]:
    fed = [i for i in node.inputs if i.side == side]
    return [scan.table for i in fed for scan in _below(i) if isinstance(scan, KafkaScan)]


def and_words(names: "dict[str, None] | list[str]") -> str:
    listed = list(names)
    return " and ".join(part for part in (", ".join(listed[:-1]), listed[-1]) if part)
