"""The kernel at brokers and registries: names of the client, references, TLS, credentials."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from spark_jobs.embedded.registry import RegistrySecurity, RegistryServer
from spark_jobs.errors import KafkaError
from spark_jobs.formats.registry import PATIENCE_S, RegistryClient
from spark_jobs.formats.written_schema import WrittenSchema
from spark_jobs.options.client_properties import CONNECTION, JAVA_ONLY, REFUSED
from spark_jobs.options.connectors import MANAGED_PROPERTIES
from spark_jobs.options.declared import read_options
from spark_jobs.options.formats import RegistryOptions
from spark_jobs.settings import resolve_all
from tests.harness.certificates import STORE_PASSWORD, Authority
from tests.harness.gateway import jvm

pytestmark = pytest.mark.service  # starts servers with TLS

BASIC = "Basic YW5uOnNlY3JldA=="  # ann:secret
BEARER = "Bearer t-0-k-e-n"


def test_properties_are_those_of_the_client() -> None:
    """No name is missing and none is invented; each is read, refused or set by rejoin itself."""
    clients: Any = jvm().org.apache.kafka.clients
    names = {
        str(name)
        for config in (clients.consumer.ConsumerConfig, clients.producer.ProducerConfig)
        for name in config.configNames()
        if not str(name).startswith("internal.")
    }
    assert CONNECTION | JAVA_ONLY | REFUSED.keys() | MANAGED_PROPERTIES.keys() == names
    assert not REFUSED.keys() & (CONNECTION | JAVA_ONLY)


@pytest.mark.parametrize("entry", ['m required password="{}";', "{}"])
def test_references_mean_the_same_in_both_languages(tmp_path: Path, entry: str) -> None:
    (tmp_path / "pw").write_text('  a"b\\c $1 \n')
    value = entry.format(f"${{file:{tmp_path}/pw}}")
    references: Any = jvm().org.apache.spark.sql.rejoin.run.References
    ours = resolve_all({"sasl.jaas.config": value})["sasl.jaas.config"]
    assert references.resolve("kafka.sasl.jaas.config", value) == ours
    assert references.resolve(value) == resolve_all({"x": value})["x"]


def test_a_reference_to_nothing_is_named() -> None:
    references: Any = jvm().org.apache.spark.sql.rejoin.run.References
    with pytest.raises(Py4JJavaError, match="REJOIN_NOT_THERE is not set"):
        references.resolve("${env:REJOIN_NOT_THERE}")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("registry-ca"))


@pytest.fixture(scope="module")
def protected(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryServer]:
    identity = authority.keystore(authority.sign("registry"), "registry", "PEM")
    trusted = authority.truststore("PEM")
    security = RegistrySecurity(identity, trusted, frozenset({BASIC, BEARER}))
    with RegistryServer(tmp_path_factory.mktemp("schemas"), security=security) as running:
        yield running


def options(protected: RegistryServer, authority: Authority, kind: str) -> dict[str, str]:
    own = authority.keystore(authority.sign("ann"), f"ann-{kind}", kind)
    found = {
        "url": protected.url,
        "ssl.truststore.location": str(authority.truststore(kind)),
        "ssl.keystore.location": str(own),
    }
    if kind != "PEM":
        found |= {f"ssl.{s}store.password": STORE_PASSWORD for s in ("key", "trust")}
    return found


def client(texts: Mapping[str, str], patience_s: float = PATIENCE_S) -> RegistryClient:
    return RegistryClient(read_options(RegistryOptions, texts), patience_s)


CREDENTIALS = [{"basic-auth.user-info": "ann:secret"}, {"bearer-auth.token": "t-0-k-e-n"}]


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "JKS"])
@pytest.mark.parametrize("credentials", CREDENTIALS, ids=["basic", "bearer"])
def test_registry_over_mutual_tls(
    protected: RegistryServer, authority: Authority, kind: str, credentials: dict[str, str]
) -> None:
    known = {**options(protected, authority, kind), **credentials}
    schema_id = client(known).register(f"s-{kind}", WrittenSchema('"long"'))
    assert schema_at(known, schema_id) == "long"


def test_credentials_in_the_address(protected: RegistryServer, authority: Authority) -> None:
    known = options(protected, authority, "PEM") | {"basic-auth.credentials-source": "URL"}
    known["url"] = known["url"].replace("://", "://ann:secret@")
    assert schema_at(known, client(known).register("in-url", WrittenSchema('"int"'))) == "int"


def test_who_has_no_certificate_or_password_stays_out(
    protected: RegistryServer, authority: Authority
) -> None:
    known = options(protected, authority, "PEM")
    with pytest.raises(KafkaError, match="REGISTRY_REFUSED"):
        client(known).register("s", WrittenSchema('"long"'))
    del known["ssl.keystore.location"]
    with pytest.raises(KafkaError, match="REGISTRY_UNREACHABLE"):
        client(known | CREDENTIALS[0], patience_s=0.1).register("s", WrittenSchema('"long"'))


def schema_at(known: dict[str, str], schema_id: int) -> str:
    """As the kernel's Java client finds it."""
    scala: Any = jvm().scala
    as_scala = scala.jdk.javaapi.CollectionConverters.asScala(known)
    access: Any = jvm().org.apache.spark.sql.rejoin.format.avro.RegistryAccess
    entered = access(scala.collection.immutable.HashMap.__getattr__("from")(as_scala))
    http = jvm().java.net.http
    address = jvm().java.net.URI.create(f"{entered.urls().head()}/schemas/ids/{schema_id}")
    request = http.HttpRequest.newBuilder(address)
    request.header("Authorization", entered.authorization().get())
    answer = entered.client().send(request.build(), http.HttpResponse.BodyHandlers.ofString())
    return str(json.loads(json.loads(answer.body())["schema"]))
