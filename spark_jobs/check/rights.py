"""Whether the broker grants the job the rights that docs/security.md lists."""

from collections.abc import Iterator, Mapping

from spark_jobs.access.acls import check_writer
from spark_jobs.check.finding import Finding
from spark_jobs.driver.rights import check_access, topic_needs, writer_needs
from spark_jobs.plan.nodes.physical import KafkaSink

_NO_WRITER = -1  # a writer number that no job uses, so that no running writer is fenced


def check_rights(sinks: Mapping[str, KafkaSink], job: str) -> Iterator[Finding]:
    """Raises AccessError with all missing rights on topics, or with a writer's missing right.

    The rights on a transactional id and on the ledger can only be tried out: this begins a
    transaction with an id that no writer uses, and aborts it.
    """
    check_access(sinks)
    topics = {need.name for sink in sinks.values() for _, need in topic_needs(sink)}
    text = f"the job may read and write its {len(topics)} topics"
    yield Finding("ok", "RIGHTS_TOPICS", "rights", text)
    for name, sink in sinks.items():
        if sink.guarantee == "exactly-once":
            tried = check_writer(sink.properties, *writer_needs(sink, job), partition=_NO_WRITER)
            text = "the job may use transactions and its ledger"
            yield (
                Finding("ok", "RIGHTS_WRITERS", f"query {name}", text)
                if tried
                else Finding(
                    "warning", "RIGHTS_UNKNOWN", f"query {name}", "no transaction could begin"
                )
            )
