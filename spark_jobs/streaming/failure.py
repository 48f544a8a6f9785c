"""Turns a chain of Java exceptions, each a class and a message, into an error with code and hint.

docs/operations.md has a section for each code. Only errors of external domains are retried; an
error that needs the user's decision is never one of them.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.access.acls import login_failed
from spark_jobs.errors import (
    AccessError,
    ConfigError,
    DatabaseError,
    FormatError,
    KafkaError,
    MachineError,
    RejoinError,
    StateError,
)

JavaError: type[Exception] = import_module("py4j.protocol").Py4JJavaError  # has no types
_MAX_CAUSES = 20
# exceptions of Kafka's clients that a retry cannot change
_LASTING = (
    "ConfigException", "InvalidTopicException",
    "UnsupportedVersionException", "InvalidTxnTimeoutException", "SerializationException",
    "PolicyViolationException",
)  # fmt: skip
# a file of the state store, or the place in it as Spark's messages name it
# what functions/computing.py raises, in the traceback of a Python worker
_FUNCTION = re.compile(r"FunctionFailure: (.*)")
_STATE_PLACE = re.compile(r"\S*/state/\d+/\d+[^\s,;)]*|opId=\d+, ?partId=\d+")


class _KnownError(NamedTuple):
    code: str
    kind: type[RejoinError]

    def error(self, text: str) -> RejoinError:
        return self.kind(self.code, text, _HINTS.get(self.code))


# by the class of the kernel's or the Kafka client's exception
_KNOWN = {
    "InvalidProducerEpochException": _KnownError("SINK_FENCED", KafkaError),
    "JsonValueException": _KnownError("JSON_VALUE", ConfigError),
    "NullValueException": _KnownError("NULL_IN_NOT_NULL_COLUMN", ConfigError),
    "ProtobufValueException": _KnownError("PROTOBUF_VALUE", ConfigError),
    "RecordTimestampException": _KnownError("RECORD_TIMESTAMP", ConfigError),
    "OffsetOutOfRangeException": _KnownError("SOURCE_DATA_LOST", StateError),
    "OversizedRecordException": _KnownError("RECORD_TOO_LARGE", ConfigError),
    "ProducerFencedException": _KnownError("SINK_FENCED", KafkaError),
    "RecordTooLargeException": _KnownError("RECORD_TOO_LARGE", ConfigError),
    "ReferenceException": _KnownError("REFERENCE_UNKNOWN", ConfigError),
    "RejectLimitException": _KnownError("DEAD_LETTER_LIMIT", FormatError),
    "RejectedRecordException": _KnownError("RECORD_REJECTED", FormatError),
    "UnknownTopicOrPartitionException": _KnownError("TOPIC_DELETED", StateError),
}
# by text in the class name or the message; the first match counts
_KNOWN_PARTS = {
    "No space left on device": _KnownError("DISK_FULL", MachineError),
    "KAFKA_DATA_LOSS": _KnownError("SOURCE_DATA_LOST", StateError),
    "CONCURRENT_STREAM_LOG_UPDATE": _KnownError("CHECKPOINT_CONTENDED", MachineError),
    "UNRELEASED_THREAD_ERROR": _KnownError("STATE_BUSY", MachineError),
    "the clock did not tick in this epoch": _KnownError("REAL_TIME_OVERLOAD", MachineError),
    # an executor ended, or files that it had left for the next stage, more often than Spark tries
    "ExecutorLostFailure": _KnownError("EXECUTORS_LOST", MachineError),
    "has failed the maximum allowable number of times": _KnownError("EXECUTORS_LOST", MachineError),
    "CANNOT_LOAD_STATE_STORE": _KnownError("CHECKPOINT_DAMAGED", StateError),
    "RocksDBException": _KnownError("CHECKPOINT_DAMAGED", StateError),
}
# exceptions of the kernel whose messages begin with a code
_CODED = {
    "LedgerException": StateError,
    "DataLossException": StateError,
    "RegistryException": KafkaError,
    "LookupException": DatabaseError,
    "LookupRefusedException": ConfigError,
}
_HINTS = {
    "PROTOBUF_VALUE": "leave such rows out with WHERE, or give the value a field that holds it",
    "RECORD_TIMESTAMP": "write NULL for the time at which the record is sent: CASE WHEN ts >= ... "
    "THEN ts END",
    "NULL_IN_NOT_NULL_COLUMN": "use COALESCE(column, ...) in the SELECT list, or let the sink "
    "column be NULL; a WHERE does not remove rows that are already in state",
    "SINK_LEDGER_MISSING": "was 'sink.transactional-id-prefix' changed? It is part of the ledger's "
    "name. If not, compare the sink with the input (docs/operations.md says how), then "
    "`rejoin run --epoch-written QUERY=yes` or `QUERY=no`",
    "SINK_LEDGER_GAP": "restore the newest copy of the checkpoint's folder, which helps only if no "
    "epoch was committed after it; else start anew (docs/operations.md says how)",
    "SINK_FENCED": "another writer uses the transactional ids, or the broker has aborted the "
    "transaction after transaction.timeout.ms; run one driver per job, or give each a "
    "'sink.transactional-id-prefix'",
    "SOURCE_DATA_LOST": "SET 'rejoin.on-data-loss' = 'continue' continues with the records that "
    "are left; a new checkpoint reads all that exist",
    "TOPIC_RECREATED": "start from a new checkpoint, or SET 'rejoin.on-data-loss' = 'continue' to "
    "keep the state and read the new topic from its beginning",
    "TOPIC_DELETED": "create the topic and start from a new checkpoint, or remove the table",
    "CHECKPOINT_TAKEN_OVER": "nothing is lost: the other driver continues",
    "CHECKPOINT_DAMAGED": "restore the whole folder from one copy, or start from a new checkpoint",
    "DISK_FULL": "the checkpoint and Spark's local folder need room",
    "EXECUTORS_LOST": "do they have the memory that they need? Their logs are on the workers",
    "REGISTRY_UNREACHABLE": "nothing is lost: start again when the registry answers; "
    "'rejoin.registry.timeout' is how long to wait for it",
    "REGISTRY_REFUSED": "set the format's 'basic-auth.*' or 'bearer-auth.*' options",
    "REGISTRY_FAILED": "check the format's 'url' and 'rejoin.schema-id': a registry need not have "
    "every kind of id",
    "LOOKUP_FAILED": "nothing is lost: the epoch is repeated when the database answers; "
    "'lookup.max-retries' is how often a query is tried again before the epoch fails",
    "LOOKUP_REFUSED": "check 'url', 'table-name', 'username' and the columns of the CREATE TABLE",
    "LOOKUP_VALUE": "declare the column as wide as the database's, and without NOT NULL if it may "
    "be NULL there",
    "FUNCTION_FAILED": "give NULL back for what the function has no value for; the log of the "
    "driver has its traceback",
    "RECORD_REJECTED": "'rejoin.dead-letter.topic' keeps such records, 'rejoin.on-error' = 'skip' "
    "drops them",
    "RECORD_TOO_LARGE": "raise that limit ('properties.max.request.size' in the sink's WITH, "
    "'max.message.bytes' of the topic), or declare 'rejoin.dead-letter.topic' in the sink's WITH "
    "for such results",
    "DEAD_LETTER_LIMIT": "does the table's schema fit the topic? 'rejoin.dead-letter.max-share' = "
    "'1' removes the limit, a larger 'rejoin.dead-letter.window' allows longer bursts",
}


def query_failure(name: str, causes: Sequence[tuple[str, str]]) -> RejoinError:
    """The error of a query; `causes`: its chain of exceptions, outermost first."""
    for kind, message in reversed(causes):
        if (error := _known_failure(kind, f"query {name}: {message}", message)) is not None:
            if error.code == "CHECKPOINT_DAMAGED":
                places = [p for _, text in causes for p in _STATE_PLACE.findall(text)]
                error.message += "".join(f"; {place}" for place in dict.fromkeys(places))
            return error
    return RejoinError("QUERY_FAILED", f"query {name}: {_line(*causes[-1])}")


@contextmanager
def java_failures(name: str) -> Iterator[None]:
    """Raise what Java throws inside the block as a RejoinError."""
    try:
        yield
    except (JavaError, CapturedException) as cause:
        thrown: Any = cause
        origin = thrown._origin if isinstance(cause, CapturedException) else thrown.java_exception
        raise query_failure(name, _chain(origin)) from cause


def causes_of(query: StreamingQuery) -> list[tuple[str, str]]:
    """The exceptions that ended the query, outermost first; PySpark's own has lost the chain."""
    handle: Any = query
    failure = handle._jsq.exception()
    return _chain(failure.get() if failure.isDefined() else None)


def java_text(thrown: Exception) -> str:
    """What Java threw, in one line, and what caused it at first."""
    handle: Any = thrown
    lines = [_line(kind, message) for kind, message in _chain(handle.java_exception)]
    first, root = lines[0], lines[-1]
    return first if root in first else f"{first} ({root})"


def _line(kind: str, message: str) -> str:
    first_line = message.strip().partition("\n")[0]  # stack traces and plans follow
    return ": ".join(filter(None, (kind.rpartition(".")[2], first_line)))


def _chain(throwable: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    while throwable is not None and len(found) < _MAX_CAUSES:
        found.append((str(throwable.getClass().getName()), str(throwable.getMessage() or "")))
        throwable = throwable.getCause()
    return found


def _known_failure(kind: str, text: str, message: str) -> RejoinError | None:
    short = kind.rpartition(".")[2]
    if short in _CODED:
        code, _, rest = message.removeprefix("[").partition("] ")
        return _CODED[short](code, text.replace(message, rest), _HINTS.get(code))
    if short in _KNOWN:
        return _KNOWN[short].error(text)
    if kind.startswith("org.apache.kafka."):
        return _client_failure(short, text)
    if (raised := _FUNCTION.search(message)) is not None:
        known = _KnownError("FUNCTION_FAILED", ConfigError)
        return known.error(f"{text.removesuffix(message)}{raised[1]}")
    first_line = text.split("\n", 1)[0]
    for part, known in _KNOWN_PARTS.items():
        if part in f"{short} {message}":
            return known.error(first_line)
    if short == "TimeoutException":
        return KafkaError("KAFKA_FAILED", f"{first_line} ({short})")
    return None


def _client_failure(short: str, text: str) -> RejoinError:
    if short.endswith("AuthorizationException"):
        return AccessError("KAFKA_ACL_MISSING", f"{text} ({short})", "see docs/security.md")
    if short.endswith("AuthenticationException"):
        return login_failed(text)
    if short.endswith(_LASTING):
        return ConfigError("KAFKA_REFUSED", f"{text} ({short})")
    return KafkaError("KAFKA_FAILED", f"{text} ({short})")
