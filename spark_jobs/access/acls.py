"""Checks of a job's rights at the broker, before it starts and after the broker has refused it.

The error for a missing ACL shows the `kafka-acls` command that adds it. The checks change nothing,
except that `check_writer` fences earlier writers with the same id, as the job itself does.
"""

import contextlib
import logging
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection, TopicPartition
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
    """One ACL that a job needs. `prefixed`: on every resource whose name begins with `name`."""

    operation: Operation
    resource: Resource
    name: str
    why: str
    prefixed: bool = False

    def __str__(self) -> str:
        every, ending = ("every ", "...") if self.prefixed else ("", "")
        return f"{self.operation} on {every}{self.resource} '{self.name}{ending}' ({self.why})"

    def command(self, servers: str, principal: str) -> str:
        pattern = " --resource-pattern-type prefixed" if self.prefixed else ""
        return (
            f"kafka-acls --bootstrap-server {servers} --add --allow-principal 'User:{principal}' "
            f"--operation {self.operation} --{self.resource} '{self.name}'{pattern}"
        )


def acl_missing(needs: Sequence[Need], properties: Mapping[str, str]) -> AccessError:
    config = admin_config(properties)
    # by a broker's default rule, the user of a Kerberos principal is its first part
    of_ticket = re.split("[/@]", config.get("sasl.kerberos.principal", "<principal>"))[0]
    principal = config.get("sasl.username", of_ticket)
    return AccessError(
        "KAFKA_ACL_MISSING",
        "the broker denies " + ", and ".join(str(need) for need in needs),
        hint="\n    ".join(need.command(config["bootstrap.servers"], principal) for need in needs),
    )


def login_failed(reason: str) -> AccessError:
    return AccessError(
        "KAFKA_LOGIN_FAILED",
        f"login or TLS handshake with the broker failed: {reason}",
        hint="compare 'properties.security.protocol', 'properties.sasl.*' and 'properties.ssl.*' "
        "with the broker's listener (docs/security.md)",
    )


def topic_missing(message: str) -> KafkaError:
    return KafkaError(
        "TOPIC_MISSING",
        message,
        hint="create the topic, or correct 'topic' in the table's WITH clause",
    )


def check_topics(properties: Mapping[str, str], needs: Sequence[Need]) -> list[Need]:
    """The needs whose topics do not exist; none if the broker does not answer.

    Raises AccessError if the login fails, or if rights on topics are missing.
    """
    errors: list[Refusal] = []
    config = admin_config(properties)
    admin = AdminClient(
        {**config, "error_cb": errors.append, "log_level": 0},  # type: ignore[dict-item]
        logger=_SILENT,
    )
    topics = TopicCollection(sorted({need.name for need in needs}))
    answers = admin.describe_topics(
        topics, include_authorized_operations=True, request_timeout=_TIMEOUT_S
    )
    while not all(future.done() for future in answers.values()):
        admin.poll(_POLL_S)
        raise_failed_login(errors)
    forbidden = [need for need in needs if not _allows(answers[need.name], need)]
    if forbidden:
        raise acl_missing(forbidden, properties)
    return [need for need in needs if _is_missing(answers[need.name])]


def raise_failed_login(errors: Sequence[Refusal]) -> None:
    """Raise AccessError for a failed login, which the client itself would retry for ever.

    A handshake that ends because the broker has gone away is no failed login.
    """
    for error in errors:
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
    """Try a transaction of a transactional writer, and abort it.

    Raises AccessError if a right is missing; returns False if it failed for another reason.
    """
    config = {**admin_config(properties), "log_level": 0}
    identity = f"{writer.name}{partition}"
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
        if (missing := refusals.get(refused.args[0].code())) is not None:
            raise acl_missing([missing], properties) from refused
        return False
    finally:
        with contextlib.suppress(KafkaException):
            producer.abort_transaction(_TIMEOUT_S)
        member.close()
    return True
