"""The error a person needs, out of a chain of Java exceptions: class and message of each.

Each has its answer in docs/operations.md. Those of external domains may pass by themselves; what
needs a person never is one of them.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.errors import (
    AccessError,
    ConfigError,
    FormatError,
    KafkaError,
    MachineError,
    RejoinError,
    StateError,
)
from spark_jobs.streaming.acls import login_failed

JavaError: type[Exception] = import_module("py4j.protocol").Py4JJavaError  # has no types
_MOST_CAUSES = 20
# of the clients' exceptions, what no repetition changes
_LASTING = (
    "ConfigException", "InvalidTopicException",
    "UnsupportedVersionException", "InvalidTxnTimeoutException", "SerializationException",
    "PolicyViolationException",
)  # fmt: skip
# a file of the state, or Spark's name of one of its parts
_STATE_PLACE = re.compile(r"\S*/state/\d+/\d+[^\s,;)]*|opId=\d+, ?partId=\d+")
_HINTS = {
    "NULL_IN_NOT_NULL_COLUMN": "COALESCE(column, ...) in the SELECT list, or a sink column that "
    "may be NULL; a WHERE does not take back rows that are in state already",
    "SINK_LEDGER_MISSING": "has the sink got another 'sink.transactional-id-prefix'? It is part of "
    "the ledger's name. If not, compare the sink with the input (docs/operations.md says how), "
    "then `rejoin run --epoch-written QUERY=yes` or `QUERY=no`",
    "SOURCE_DATA_LOST": "SET 'rejoin.on-data-loss' = 'continue' goes on with what is left; a new "
    "checkpoint reads everything that is there",
    "TOPIC_RECREATED": "start from a new checkpoint, or SET 'rejoin.on-data-loss' = 'continue' to "
    "read the new topic from its beginning on top of the old one's state",
    "TOPIC_DELETED": "create the topic and start from a new checkpoint, or take the table out",
    "CHECKPOINT_TAKEN_OVER": "nothing is lost: the other driver goes on",
    "REGISTRY_UNREACHABLE": "start again when the registry is back: nothing is lost; "
    "'rejoin.registry.timeout' is how long to wait for it",
    "REGISTRY_REFUSED": "set the format's 'basic-auth.*' or 'bearer-auth.*' options",
    "REGISTRY_FAILED": "look at the format's 'url' and at 'rejoin.schema-id': a registry need not "
    "have every kind of id",
    "RECORD_TOO_LARGE": "raise that limit ('properties.max.request.size' in the sink's WITH, "
    "'max.message.bytes' of the topic), or set such results aside: 'rejoin.dead-letter.topic' in "
    "the sink's WITH",
    "DEAD_LETTER_LIMIT": "does the table's schema fit the topic? 'rejoin.dead-letter.max-share' = "
    "'1' sets no limit, a larger 'rejoin.dead-letter.window' lets longer bursts pass",
}


def query_failure(name: str, causes: Sequence[tuple[str, str]]) -> RejoinError:
    """Of the chain, outermost first."""
    for kind, message in reversed(causes):
        if (error := _known_failure(kind, f"query {name}: {message}", message)) is not None:
            if error.code == "CHECKPOINT_DAMAGED":
                error.message += "".join(f"; {place}" for place in _state_places(causes))
            return error
    kind, message = causes[-1]
    told = message.split("\n", 1)[0]  # below come stack traces and plans
    return RejoinError("QUERY_FAILED", f"query {name}: {kind.rpartition('.')[2]}: {told}")


@contextmanager
def java_failures(name: str) -> Iterator[None]:
    """Raise what Java throws inside the block as the error a person needs."""
    try:
        yield
    except (JavaError, CapturedException) as cause:
        thrown: Any = cause
        origin = thrown._origin if isinstance(cause, CapturedException) else thrown.java_exception
        raise query_failure(name, _chain(origin)) from cause


def causes_of(query: StreamingQuery) -> list[tuple[str, str]]:
    """What ended the query, outermost first; PySpark's own exception has lost the chain."""
    handle: Any = query
    failure = handle._jsq.exception()
    return _chain(failure.get() if failure.isDefined() else None)


def _chain(throwable: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    while throwable is not None and len(found) < _MOST_CAUSES:
        found.append((str(throwable.getClass().getName()), str(throwable.getMessage())))
        throwable = throwable.getCause()
    return found


def _state_places(causes: Sequence[tuple[str, str]]) -> list[str]:
    """What the chain says of where in the checkpoint the damage is."""
    found = [place for _, message in causes for place in _STATE_PLACE.findall(message)]
    return list(dict.fromkeys(found))


def _known_failure(kind: str, told: str, message: str) -> RejoinError | None:
    short = kind.rpartition(".")[2]
    match short:
        case "LedgerException" | "DataLossException":
            code, rest = _coded(message)
            return StateError(code, told.replace(message, rest), _HINTS.get(code))
        case "RejectLimitException":
            return FormatError("DEAD_LETTER_LIMIT", told, _HINTS["DEAD_LETTER_LIMIT"])
        case "OversizedRecordException" | "RecordTooLargeException":
            return ConfigError("RECORD_TOO_LARGE", told, _HINTS["RECORD_TOO_LARGE"])
        case "RejectedRecordException":
            return FormatError(
                "RECORD_REJECTED",
                told,
                hint="'rejoin.dead-letter.topic' keeps such records, 'rejoin.on-error' = 'skip' "
                "drops them",
            )
        case "RegistryException":
            code, rest = _coded(message)
            return KafkaError(code, told.replace(message, rest), _HINTS.get(code))
        case "NullValueException":
            return ConfigError("NULL_IN_NOT_NULL_COLUMN", told, _HINTS["NULL_IN_NOT_NULL_COLUMN"])
        case "ReferenceException":
            return ConfigError("REFERENCE_UNKNOWN", told)
    if kind.startswith("org.apache.kafka."):
        return _client_failure(short, told)
    return _machine_failure(short, told, message)


def _coded(message: str) -> tuple[str, str]:
    """The kernel's `[CODE] message`."""
    code, _, rest = message.removeprefix("[").partition("] ")
    return code, rest


def _client_failure(short: str, told: str) -> RejoinError:
    match short:
        case "ProducerFencedException" | "InvalidProducerEpochException":
            return KafkaError(
                "SINK_FENCED",
                f"{told}: another writer has taken over the transactional ids, or the broker has "
                "given up a transaction after transaction.timeout.ms",
                hint="run one driver per job, or give each a 'sink.transactional-id-prefix'",
            )
        case "OffsetOutOfRangeException":
            return StateError("SOURCE_DATA_LOST", told, _HINTS["SOURCE_DATA_LOST"])
        case "UnknownTopicOrPartitionException":
            return StateError("TOPIC_DELETED", told, _HINTS["TOPIC_DELETED"])
        case _ if short.endswith("AuthorizationException"):
            return AccessError("KAFKA_ACL_MISSING", f"{told} ({short})", "see docs/security.md")
        case _ if short.endswith("AuthenticationException"):
            return login_failed(told)
        case _ if short.endswith(_LASTING):
            return ConfigError("KAFKA_REFUSED", f"{told} ({short})")
    return KafkaError("KAFKA_FAILED", f"{told} ({short})")


def _machine_failure(short: str, told: str, message: str) -> RejoinError | None:
    told = told.split("\n", 1)[0]
    if "No space left on device" in message:
        return MachineError(
            "DISK_FULL", told, hint="the checkpoint and Spark's local folder need room"
        )
    if "KAFKA_DATA_LOSS" in message:
        return StateError("SOURCE_DATA_LOST", told, _HINTS["SOURCE_DATA_LOST"])
    if "CONCURRENT_STREAM_LOG_UPDATE" in message:  # the next start finds out who may go on
        return MachineError("CHECKPOINT_CONTENDED", told)
    if "UNRELEASED_THREAD_ERROR" in message:  # a task of the run before still ends
        return MachineError("STATE_BUSY", told)
    if "CANNOT_LOAD_STATE_STORE" in message or short == "RocksDBException":
        return StateError(
            "CHECKPOINT_DAMAGED",
            told,
            hint="restore the whole folder from one copy, or start from a new checkpoint",
        )
    if short == "TimeoutException":
        return KafkaError("KAFKA_FAILED", f"{told} ({short})")
    return None
