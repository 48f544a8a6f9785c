"""What the broker lets the job do, right by right, as docs/security.md lists them."""

from collections.abc import Iterator, Mapping

from spark_jobs.access.acls import check_writer
from spark_jobs.check.finding import Finding
from spark_jobs.driver.rights import check_access, topic_needs, writer_needs
from spark_jobs.plan.nodes.physical import KafkaSink

_NOBODY = -1  # the number of no writer: a running job's are not fenced


def check_rights(sinks: Mapping[str, KafkaSink], job: str) -> Iterator[Finding]:
    """Raises AccessError that names all rights on topics, or the right of a writer, that lack.

    A writer's rights on its transactional id and ledger can only be tried: with a transaction of
    an id that no writer has, which is aborted.
    """
    check_access(sinks)
    topics = {need.name for sink in sinks.values() for _, need in topic_needs(sink)}
    told = f"{len(topics)} topics may be read and written as the job does"
    yield Finding("ok", "RIGHTS_TOPICS", "rights", told)
    for name, sink in sinks.items():
        if sink.guarantee == "exactly-once":
            tried = check_writer(sink.properties, *writer_needs(sink, job), partition=_NOBODY)
            text = "transactions and their ledger are allowed"
            yield (
                Finding("ok", "RIGHTS_WRITERS", f"query {name}", text)
                if tried
                else Finding("warning", "RIGHTS_UNKNOWN", f"query {name}", "no transaction began")
            )
