"""Whether the databases in which rows are looked up answer, and answer quickly."""

from collections.abc import Iterable, Iterator

from spark_jobs.check.finding import Finding
from spark_jobs.kernel.calls import Kernel, LookupFacts
from spark_jobs.operators.running import spec
from spark_jobs.plan.nodes.physical import KafkaSink, LookupJoin, Stateful
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.streaming.failure import java_failures


def lookup_nodes(sinks: Iterable[KafkaSink]) -> dict[str, tuple[LookupJoin, Stateful]]:
    """The lookup joins of a job by the table and the columns that they look rows up by."""
    found: dict[str, tuple[LookupJoin, Stateful]] = {}
    for sink in sinks:
        for node in stateful_nodes(sink):
            if isinstance(join := node.machine, LookupJoin):
                columns = ", ".join(join.lookup.columns[i].name for i in join.lookup.key)
                found.setdefault(f"{join.lookup.table} by {columns}", (join, node))
    return found


def check_lookup(kernel: Kernel, join: LookupJoin, node: Stateful) -> Iterator[Finding]:
    """Connect to the database and look at the table. Raises DatabaseError, ConfigError."""
    about = f"table {join.lookup.table}"
    with java_failures(about):
        facts = kernel.check_lookup(spec(node))
    name = join.lookup.properties["table-name"]
    key = ", ".join(facts["key"])
    fits = f"{name} is there, with the declared columns and types"
    if not facts["isStored"]:
        text = f"{fits}; it is a view, whose tables need an index on what {key} is made of"
        yield Finding("ok", "LOOKUP_FOUND", about, text)
        return
    yield Finding("ok", "LOOKUP_FOUND", about, f"{fits}; {_size(facts)}")
    if not facts["isIndexed"]:
        yield Finding(
            "warning",
            "LOOKUP_UNINDEXED",
            about,
            f"no index of {name} begins with a column of the key ({key}): each query reads the "
            "whole table",
            facts["addIndex"],
        )


def _size(facts: LookupFacts) -> str:
    known = f"about {facts['rows']} rows" if facts["rows"] >= 0 else "never analysed"
    return f"{known}, an index on {', '.join(facts['key'])}" if facts["isIndexed"] else known
