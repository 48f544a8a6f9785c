"""Secrets and Kafka properties in WITH: what is refused, with its place, and never shown."""

import re
from pathlib import Path

import pytest

from spark_jobs.errors import PositionedError, SqlErrors
from spark_jobs.options.client_properties import REFUSED
from spark_jobs.options.connectors import MANAGED_PROPERTIES
from spark_jobs.sql.bind.binder import bind

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
TABLE = """CREATE TABLE t (id INT) WITH ('connector' = 'kafka', 'topic' = 't',
  'properties.bootstrap.servers' = 'b:1', 'format' = 'avro-confluent',
  'avro-confluent.url' = 'http://r', {option});
CREATE TABLE s (id INT) WITH ('connector' = 'kafka', 'topic' = 's',
  'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
INSERT INTO s SELECT id FROM t;"""
WORD = "hunter2"
JAAS = "x.ScramLoginModule required "


def problem(name: str, value: str) -> PositionedError | None:
    """Of the option; the query behind it is fine."""
    text = TABLE.replace("{option}", f"'{name}' = '{value}'")
    if name == "avro-confluent.url":
        text = text.replace("'avro-confluent.url' = 'http://r', ", "")
    try:
        bind(text, "job.sql")
    except SqlErrors as errors:
        [error] = errors.errors
        return error
    return None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("properties.sasl.jaas.config", f'{JAAS}username="u" password="{WORD}";'),
        ("properties.sasl.jaas.config", f"{JAAS}username=u password={WORD};"),
        (
            "properties.sasl.jaas.config",
            f'x.OAuthBearerLoginModule required clientSecret="{WORD}";',
        ),
        ("properties.sasl.jaas.config", f'{JAAS}username="u" password="{WORD}${{env:X}}";'),
        ("properties.ssl.keystore.password", WORD),
        ("properties.ssl.key.password", f"{WORD}${{env:X}}"),
        ("properties.ssl.keystore.key", f"-----BEGIN PRIVATE KEY----- {WORD}"),
        ("avro-confluent.basic-auth.user-info", f"ann:{WORD}"),
        ("avro-confluent.basic-auth.user-info", f"${{env:X}}:{WORD}"),
        ("avro-confluent.bearer-auth.token", WORD),
        ("avro-confluent.ssl.truststore.password", WORD),
        ("avro-confluent.url", f"https://ann:{WORD}@registry"),
    ],
)
def test_a_secret_in_the_text_is_refused(name: str, value: str) -> None:
    error = problem(name, value)
    assert error is not None
    assert (error.code, error.line) == ("SECRET_IN_SQL", 3)
    assert name in error.message
    assert WORD not in f"{error.message} {error.hint}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("properties.sasl.jaas.config", f'{JAAS}username="u" password="${{file:/p}}";'),
        ("properties.sasl.jaas.config", "${file:/run/secrets/jaas}"),
        ("properties.ssl.keystore.password", "${env:PW}"),
        ("properties.ssl.truststore.certificates", "-----BEGIN CERTIFICATE----- public"),
        ("avro-confluent.basic-auth.user-info", "ann:${env:PW}"),
        ("avro-confluent.basic-auth.user-info", "${env:USER_INFO}"),
        ("avro-confluent.url", "https://ann:${env:PW}@registry"),
        ("properties.fetch.min.bytes", "1"),
    ],
)
def test_references_and_public_values_pass(name: str, value: str) -> None:
    assert problem(name, value) is None


@pytest.mark.parametrize("name", [*REFUSED, *MANAGED_PROPERTIES])
def test_what_a_client_cannot_honour_is_refused(name: str) -> None:
    error = problem(f"properties.{name}", "x")
    assert error is not None
    assert error.code == "UNSUPPORTED_OPTION"
    assert f"'{name}'" in error.message
    assert error.hint


def test_unknown_properties_are_refused() -> None:
    error = problem("properties.sasl.mechanims", "PLAIN")
    assert error is not None
    assert (error.code, error.hint) == ("UNKNOWN_OPTION", "did you mean 'sasl.mechanism'?")


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("sasl.mechanism", "AWS_MSK_IAM", "AWS_MSK_IAM"),
        ("security.protocol", "TLS", "'TLS'"),
        ("sasl.jaas.config", "a.Krb5LoginModule required useTicketCache=true;", "useTicketCache"),
        ("sasl.jaas.config", "nonsense", "not a JAAS entry"),
    ],
)
def test_values_that_cannot_work_are_refused(name: str, value: str, named: str) -> None:
    error = problem(f"properties.{name}", value)
    assert error is not None
    assert error.code == "UNSUPPORTED_OPTION"
    assert named in error.message


def test_the_examples_of_the_page_are_right() -> None:
    examples = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 6
    sink = "CREATE TABLE s (id INT) WITH ('connector' = 'kafka', 'topic' = 's', 'format' = 'json', "
    sink += "'properties.bootstrap.servers' = 'b:1');"
    for example in examples:
        [name] = re.findall(r"CREATE TABLE (\w+)", example)
        insert = f"INSERT INTO s TABLES {name};".replace("TABLES", "SELECT id FROM")
        assert bind(example + sink + insert, "security.md")
