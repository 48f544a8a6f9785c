"""Protected brokers: each mechanism through both client libraries, and each ACL that is missing."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from spark_jobs.access.acls import Need
from spark_jobs.access.librdkafka import admin_config
from spark_jobs.access.topics import Limit, open_topics
from spark_jobs.driver.rights import check_access, missing_acl, topic_needs, writer_needs
from spark_jobs.embedded.broker import Broker
from spark_jobs.errors import AccessError
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.harness.certificates import STORE_PASSWORD, Authority
from tests.harness.gateway import kernel
from tests.harness.protected import (
    USER_PASSWORD,
    create_topics,
    grant,
    login,
    protected_broker,
    without,
)

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
Protected = tuple[Broker, Authority]

# of the job below, as docs/security.md has them
LEAST = [
    Need("Read", "topic", "orders", ""),
    Need("Read", "topic", "rates", ""),
    Need("Write", "topic", "letters", ""),
    Need("Write", "topic", "joined", ""),
    Need("Read", "topic", "joined", ""),
    Need("Write", "transactional-id", "shop-joined-", "", prefixed=True),
    Need("Read", "group", "shop-joined-", "", prefixed=True),
]


@pytest.fixture(scope="module")
def sasl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    broker, authority = protected_broker(tmp_path_factory.mktemp("sasl"), "SASL_SSL")
    with broker:
        create_topics(broker, "orders", "rates", "joined", "letters", "open")
        grant(broker, [*LEAST, Need("Describe", "topic", "open", "")])
        yield broker, authority


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("secret") / "password"
    path.write_text(USER_PASSWORD + "\n")
    return f"${{file:{path}}}"


def connection(protected: Protected, kind: str = "PEM") -> dict[str, str]:
    broker, authority = protected
    password = {} if kind == "PEM" else {"ssl.truststore.password": STORE_PASSWORD}
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(authority.truststore(kind)),
        "ssl.truststore.type": kind,
        **password,
    }


def seen_by_librdkafka(properties: Mapping[str, str], topic: str) -> str:
    admin = AdminClient({**admin_config(properties)})
    asked = admin.describe_topics(TopicCollection([topic]), request_timeout=20)
    return str(asked[topic].result(20).name)


def seen_by_java(properties: Mapping[str, str], topic: str) -> str:
    """Through the kernel, which looks the references up."""
    return next(iter(kernel().topic_ids(properties, [topic])))


Client = Callable[[Mapping[str, str], str], str]
BOTH = pytest.mark.parametrize("client", [seen_by_librdkafka, seen_by_java])


@BOTH
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_mechanisms(sasl: Protected, secret: str, mechanism: str, client: Client) -> None:
    properties = {**connection(sasl), **login(mechanism, secret)}
    assert client(properties, "open") == "open"


@BOTH
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_trust_stores(sasl: Protected, secret: str, kind: str, client: Client) -> None:
    properties = {**connection(sasl, kind), **login("SCRAM-SHA-512", secret)}
    assert client(properties, "open") == "open"


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    broker, authority = protected_broker(tmp_path_factory.mktemp("mutual"), "SSL")
    with broker:
        create_topics(broker, "open")
        yield broker, authority


@BOTH
@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "JKS", "inline"])
def test_mutual_tls(mutual: Protected, kind: str, client: Client) -> None:
    broker, authority = mutual
    signed = authority.sign("admin")  # who may do everything
    trusted = {"ssl.truststore.certificates": authority.root_pem, "ssl.truststore.type": "PEM"}
    own = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": signed.key_pem(),
        "ssl.keystore.certificate.chain": signed.certificate_pem(),
    }
    if kind != "inline":
        path = authority.keystore(signed, f"client-{kind}", kind)
        own = {"ssl.keystore.type": kind, "ssl.keystore.location": str(path)}
        own |= {} if kind == "PEM" else {"ssl.keystore.password": STORE_PASSWORD}
    servers = {"bootstrap.servers": broker.bootstrap_servers, "security.protocol": "SSL"}
    assert client({**servers, **trusted, **own}, "open") == "open"


def test_a_wrong_password_fails_at_once(sasl: Protected, tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("not-it")
    properties = {**connection(sasl), **login("PLAIN", f"${{file:{tmp_path}/pw}}")}
    with pytest.raises(AccessError, match=r"KAFKA_LOGIN_FAILED.*Invalid username or password"):
        check_access({"q": job(properties)})


def test_a_server_nobody_vouches_for_is_not_trusted(
    sasl: Protected, secret: str, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path).truststore("PEM")
    properties = {**connection(sasl), **login("PLAIN", secret)}
    with pytest.raises(AccessError, match=r"KAFKA_LOGIN_FAILED.*certificate verify failed"):
        check_access({"q": job({**properties, "ssl.truststore.location": str(stranger)})})


SQL = """
SET 'pipeline.name' = 'shop';
CREATE TABLE orders (id INT, cur STRING) WITH ('connector' = 'kafka', 'topic' = 'orders',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset',
  'rejoin.dead-letter.topic' = 'letters');
CREATE TABLE rates (cur STRING, rate INT, PRIMARY KEY (cur) NOT ENFORCED) WITH ('topic' = 'rates',
  'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE joined (id INT, rate INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('topic' = 'joined',
  'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO joined SELECT o.id, r.rate FROM orders o JOIN rates r ON o.cur = r.cur;
"""


def job(properties: Mapping[str, str]) -> KafkaSink:
    told = "".join(f"'properties.{k}' = '{v}', " for k, v in properties.items())
    [planned] = plan(bind(SQL.replace("WITH (", f"WITH ({told}"), "job"))
    assert isinstance(planned.root, KafkaSink)
    return planned.root


@pytest.fixture
def planned(sasl: Protected, secret: str) -> KafkaSink:
    return job({**connection(sasl), **login("SCRAM-SHA-512", secret)})


def test_the_needs_of_a_plan_are_the_least(planned: KafkaSink) -> None:
    needs = [need for _, need in topic_needs(planned)] + list(writer_needs(planned, "shop"))
    told = {(n.operation, n.resource, n.name, n.prefixed) for n in needs}
    assert told == {(n.operation, n.resource, n.name, n.prefixed) for n in LEAST}


def refused(sink: KafkaSink) -> AccessError | None:
    """What the broker does not allow: at the start, or as a refusal of a running job is named."""
    return missing_acl(AccessError("KAFKA_ACL_MISSING", "something"), {"joined": sink}, "shop")


def test_nothing_is_missing(planned: KafkaSink) -> None:
    assert refused(planned) is None


@pytest.mark.parametrize("need", LEAST, ids=lambda n: f"{n.operation} {n.resource} {n.name}")
def test_each_missing_acl_is_named(sasl: Protected, planned: KafkaSink, need: Need) -> None:
    with without(sasl[0], need):
        error = refused(planned)
    assert error is not None
    assert f"{need.operation} on " in error.message
    assert f"{need.resource} '{need.name}" in error.message
    assert f"--operation {need.operation} --{need.resource} '{need.name}'" in (error.hint or "")
    assert "--allow-principal 'User:shop'" in (error.hint or "")
    assert USER_PASSWORD not in error.render()


def test_a_missing_right_on_a_group_is_named(
    sasl: Protected, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.access.topics._TIMEOUT_S", 3.0)
    properties = {**connection(sasl), **login("SCRAM-SHA-512", secret), "group.id": "elsewhere"}
    with (
        open_topics("orders", ["orders"], properties) as edge,
        pytest.raises(AccessError, match=r"KAFKA_ACL_MISSING.*Read on group 'elsewhere'"),
    ):
        edge.starts(Limit("group-offsets"))
