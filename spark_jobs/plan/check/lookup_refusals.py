"""What a table of a database can be used for, and what a lookup join needs."""

from collections.abc import Iterator

from spark_jobs.errors import PositionedError
from spark_jobs.plan.check.problems import unsupported, wrong
from spark_jobs.plan.facts.facts import as_of_time
from spark_jobs.plan.facts.lookups import looked_up, lookup_condition
from spark_jobs.plan.facts.sources import Source
from spark_jobs.sql.logical import Join, Logical, Scan, Sink, inputs_of

LOOK_UP = "FROM o JOIN t FOR SYSTEM_TIME AS OF o.proctime AS t ON o.k = t.k"


def scan_refusals(node: Logical) -> Iterator[PositionedError]:
    """Tables of databases that are read or written otherwise than by looking rows up."""
    if isinstance(node, Sink) and node.table.is_looked_up:
        yield unsupported(
            "LOOKUP_ONLY",
            f"{node.table.name} is a table of a database, which cannot be written to",
            node.position,
            "write to a Kafka topic",
        )
    if isinstance(node, Scan) and node.table.is_looked_up:
        yield unsupported(
            "LOOKUP_ONLY",
            f"{node.table.name} is a table of a database: its rows can only be looked up",
            node.position,
            f"{LOOK_UP}, where o.proctime is PROCTIME()",
        )
    for below in inputs_of(node):
        if not (isinstance(node, Join) and below is node.right and looked_up(node)):
            yield from scan_refusals(below)


def lookup_refusals(join: Join, source: Source) -> Iterator[PositionedError]:
    """What a lookup join lacks."""
    name = source.table.name
    if as_of_time(join) != "proctime":
        yield wrong(
            "LOOKUP_TIME",
            f"rows of {name} are looked up as they are now, by a processing time",
            join.position,
            "FOR SYSTEM_TIME AS OF takes a column of the left table that is PROCTIME(); for rows as"
            " they were, read the table's changes from Kafka (Debezium)",
        )
    elif not lookup_condition(join, source).keys:
        yield wrong(
            "LOOKUP_KEY",
            f"rows of {name} are looked up by equality of a column of it, as it stands, with an"
            " expression over the left row, but ON has none",
            join.position,
            "compare a number, text, BOOLEAN, date or timestamp column by =, and cast the left"
            " side where the types differ: ON CAST(o.k AS INT) = t.k",
        )
