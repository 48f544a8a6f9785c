"""What the broker lets us do, asked before a job begins and when it is refused something.

An ACL that is missing is named as `kafka-acls` would add it. Asking changes nothing, but for
`check_writer`, which fences earlier writers of the id as the job itself does.
"""

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from confluent_kafka import (
    Consumer,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import KafkaError as Refusal
from confluent_kafka.admin import AdminClient

from spark_jobs.access.librdkafka import admin_config
from spark_jobs.errors import AccessError, KafkaError

Operation: TypeAlias = Literal["Read", "Write", "Describe"]
Resource: TypeAlias = Literal["topic", "group", "transactional-id"]

_TIMEOUT_S = 10.0
_POLL_S = 0.05
_SILENT = logging.getLogger("rejoin.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


@dataclass(frozen=True, slots=True)
class Need:
    """One ACL: why somebody may do what to which resource, or to all whose names start so."""

    operation: Operation
    resource: Resource
    name: str
    why: str
    prefixed: bool = False

    def __str__(self) -> str:
        every = "every " if self.prefixed else ""
        ending = "..." if self.prefixed else ""
        return f"{self.operation} on {every}{self.resource} '{self.name}{ending}' ({self.why})"

    def command(self, servers: str, principal: str) -> str:
        pattern = " --resource-pattern-type prefixed" if self.prefixed else ""
        return (
            f"kafka-acls --bootstrap-server {servers} --add --allow-principal 'User:{principal}' "
            f"--operation {self.operation} --{self.resource} '{self.name}'{pattern}"
        )


def acl_missing(needs: Sequence[Need], properties: Mapping[str, str]) -> AccessError:
    """The error that names them all."""
    config = admin_config(properties)
    principal = config.get("sasl.username", "<principal>")
    return AccessError(
        "KAFKA_ACL_MISSING",
        "the broker does not allow us " + ", nor ".join(str(need) for need in needs),
        hint="\n    ".join(need.command(config["bootstrap.servers"], principal) for need in needs),
    )


def login_failed(reason: str) -> AccessError:
    """Of the words in which the client told it."""
    return AccessError(
        "KAFKA_LOGIN_FAILED",
        f"the broker and we do not accept each other: {reason}",
        hint="compare 'properties.security.protocol', 'properties.sasl.*' and 'properties.ssl.*' "
        "with the broker's listener (docs/security.md)",
    )


def topic_missing(told: str) -> KafkaError:
    """The error that says so, of words in which somebody found it out."""
    return KafkaError(
        "TOPIC_MISSING",
        told,
        hint="create the topic, or correct 'topic' in the table's WITH clause",
    )


def check_topics(properties: Mapping[str, str], needs: Sequence[Need]) -> list[Need]:
    """Those of topics that are not there.

    A broker that does not answer is for others to report.

    Raises:
        AccessError: a login fails, or rights on topics are missing.
    """
    heard: list[Refusal] = []
    config = admin_config(properties)
    admin = AdminClient(
        {**config, "error_cb": heard.append, "log_level": 0},  # type: ignore[dict-item]
        logger=_SILENT,
    )
    topics = TopicCollection(sorted({need.name for need in needs}))
    asked = admin.describe_topics(
        topics, include_authorized_operations=True, request_timeout=_TIMEOUT_S
    )
    while not all(future.done() for future in asked.values()):
        admin.poll(_POLL_S)
        raise_failed_login(heard)
    forbidden = [need for need in needs if not _allows(asked[need.name], need)]
    if forbidden:
        raise acl_missing(forbidden, properties)
    return [need for need in needs if _is_missing(asked[need.name])]


def raise_failed_login(heard: Sequence[Refusal]) -> None:
    """Raise AccessError if one of the client's errors says so; it would try again for ever.

    A broker that goes away in the middle of a handshake refuses nobody.
    """
    for error in heard:
        refused = error.code() in (Refusal._AUTHENTICATION, Refusal._SSL)
        if refused and "isconnected" not in error.str():
            raise login_failed(error.str())


def _allows(future: Future[Any], need: Need) -> bool:
    try:
        allowed = future.result().authorized_operations
    except KafkaException as refused:
        return bool(refused.args[0].code() != Refusal.TOPIC_AUTHORIZATION_FAILED)
    return allowed is None or need.operation.upper() in {a.name for a in allowed}


def _is_missing(future: Future[Any]) -> bool:
    refused = future.exception()
    if not isinstance(refused, KafkaException):
        return False
    return bool(refused.args[0].code() == Refusal.UNKNOWN_TOPIC_OR_PART)


def check_writer(
    properties: Mapping[str, str], writer: Need, group: Need, topic: Need, partition: int = 0
) -> bool:
    """Raise AccessError for what a transactional writer lacks; its transaction is aborted.

    False if the broker did not get as far as to say so.
    """
    config = {**admin_config(properties), "log_level": 0}
    identity = f"{writer.name}{partition}"
    # a second producer of an id is told of the first one's fate
    producer = Producer({**config, "transactional.id": identity}, logger=_SILENT)
    member = Consumer({**config, "group.id": identity}, logger=_SILENT)
    refusals = {
        Refusal.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: writer,
        Refusal.GROUP_AUTHORIZATION_FAILED: group,
        Refusal.TOPIC_AUTHORIZATION_FAILED: topic,
    }
    try:
        producer.init_transactions(_TIMEOUT_S)
        producer.begin_transaction()
        place = TopicPartition(topic.name, 0, int(time.time()))
        producer.send_offsets_to_transaction([place], member.consumer_group_metadata(), _TIMEOUT_S)
    except KafkaException as refused:
        missing = refusals.get(refused.args[0].code())
        if missing is not None:
            raise acl_missing([missing], properties) from refused
        return False
    finally:
        with contextlib.suppress(KafkaException):
            producer.abort_transaction(_TIMEOUT_S)
        member.close()
    return True
