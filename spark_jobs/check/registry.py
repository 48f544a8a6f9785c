"""Whether schema registries answer, and whether their schemas fit the columns of tables.

Nothing is registered. A source's records name their schemas by id, so the latest schema of its
subject (as Flink and Debezium name subjects) only tells what its writers are about to send.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from spark_jobs.check.finding import Finding
from spark_jobs.errors import EXIT_CODES
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.formats.sink_schema import subject_of, unregistered, written_schema
from spark_jobs.formats.written_schema import WrittenSchema
from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import resolve_public, spec
from spark_jobs.operators.sink_spec import record_columns
from spark_jobs.options.formats import AvroRegistryOptions, Format, RegistryOptions, format_of
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink

TIMEOUT_S = 2.0
Part: TypeAlias = Literal["key", "value"]


@dataclass(frozen=True, slots=True)
class RegistryAnswer:
    """A registry that answered, and the time of its `Date` header in Unix seconds, if any."""

    url: str
    clock_s: float | None


def check_registry(declared: RegistryOptions) -> tuple[Finding, RegistryAnswer]:
    """Raises KafkaError or FormatError if the registry does not answer or refuses us."""
    url = str(declared.url)
    client = RegistryClient(declared, TIMEOUT_S)
    try:
        count, clock_s = client.subjects()
    finally:
        client.close()
    text = f"answers, with {count} subjects"
    return Finding("ok", "REGISTRY_ANSWERS", f"registry {url}", text), RegistryAnswer(url, clock_s)


def registry_formats(
    scans: Sequence[KafkaScan], sinks: Sequence[KafkaSink]
) -> dict[str, RegistryOptions]:
    """By registry URL, one of the formats that use it."""
    nodes: list[KafkaScan | KafkaSink] = [*scans, *sinks]
    return {str(options.url): options for node in nodes for _, _, options in _parts(node)}


def check_reader(kernel: Kernel, scan: KafkaScan) -> Iterator[Finding]:
    """Compare the latest schemas of a source's subjects with its columns, as the kernel would."""
    for part, declared, options in _parts(scan):
        if not isinstance(declared.options, AvroRegistryOptions):
            continue  # the other formats read no schema
        if not any(column.origin == part for column in scan.columns):
            continue
        for topic in scan.topics:
            subject = options.subject or f"{topic.name}-{part}"
            client = RegistryClient(options, TIMEOUT_S)
            try:
                latest = client.latest(subject)
            finally:
                client.close()
            if latest is None:
                yield Finding(
                    "warning",
                    "SUBJECT_MISSING",
                    f"table {scan.table}",
                    f"the registry has no subject {subject}",
                    "nothing was written yet, or under another subject: records name schemas by id",
                )
            else:
                fit = kernel.fit(spec(scan), is_key=part == "key", schema_id=latest.id)
                yield _fit(scan, f"{subject} version {latest.version} (id {latest.id})", fit)


def _fit(scan: KafkaScan, schema: str, fit: Mapping[str, Any]) -> Finding:
    about = f"table {scan.table}"
    if (problem := fit.get("problem")) is not None:
        hint = "declare the columns as the schema has them; docs/formats.md has the types"
        text = f"{schema} does not fit the columns: {problem}"
        return Finding("error", "READER_MISMATCH", about, text, hint, EXIT_CODES["user"])
    if fit["absent"]:
        names = ", ".join(fit["absent"])
        text = f"{schema} fits, but lacks {names}: NULL in every row"
        return Finding(
            "warning", "READER_LACKS", about, text, "is that the name of the field in the schema?"
        )
    return Finding("ok", "READER_FITS", about, f"{schema} fits the columns")


def check_writer_schema(sink: KafkaSink) -> Iterator[Finding]:
    """What the registry would do with the sink's schemas when the job starts."""
    for part, declared, options in _parts(sink):
        schema = written_schema(declared, record_columns(sink, part))
        client = RegistryClient(options, TIMEOUT_S)
        try:
            subject = subject_of(options, sink.topic, part)
            yield _judged(client, sink, subject, schema, options.registers)
        finally:
            client.close()


def _judged(
    client: RegistryClient, sink: KafkaSink, subject: str, schema: WrittenSchema, registers: bool
) -> Finding:
    about = f"sink {sink.table}"
    if client.lookup(subject, schema) is not None:
        return Finding("ok", "SUBJECT_SAME", about, f"subject {subject} has the sink's schema")
    if not registers:
        missing = unregistered(subject)
        code = EXIT_CODES["user"]
        return Finding("error", missing.code, about, missing.message, missing.hint, code)
    latest = client.latest(subject)
    if latest is None:
        text = f"subject {subject} does not exist: the sink's schema will be its first version"
        return Finding("ok", "SUBJECT_NEW", about, text)
    problems = client.problems(subject, schema)
    if not problems:
        text = f"subject {subject}: the sink's schema is compatible and becomes version "
        return Finding("ok", "SUBJECT_COMPATIBLE", about, f"{text}{latest.version + 1}")
    return Finding(
        "error",
        "SCHEMA_INCOMPATIBLE",
        about,
        f"subject {subject}: the registry would refuse the sink's schema: {'; '.join(problems)}",
        "write to another topic, or change the subject's compatibility level",
        EXIT_CODES["user"],
    )


def _parts(node: KafkaScan | KafkaSink) -> Iterator[tuple[Part, Format, RegistryOptions]]:
    parts: tuple[tuple[Part, Format | None], ...] = (
        ("key", node.key_format),
        ("value", node.value_format),
    )
    for part, declared in parts:
        if declared is None:
            continue
        known = format_of(declared.name, resolve_public(declared.texts))
        if known.registry is not None and known.registry.url is not None:
            yield part, known, known.registry
