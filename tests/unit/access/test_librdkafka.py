"""One set of options, Java's, told to librdkafka; and everything that it cannot be told."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from spark_jobs.access.acls import Need, acl_missing
from spark_jobs.access.librdkafka import admin_config
from spark_jobs.errors import ConfigError
from spark_jobs.options.client_properties import CONNECTION, JAVA_ONLY
from tests.harness.certificates import STORE_PASSWORD, Authority

pytestmark = pytest.mark.service  # it makes keys and stores

SCRAM = {
    "bootstrap.servers": "b:1",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
}
OAUTH = {**SCRAM, "sasl.mechanism": "OAUTHBEARER"}
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def jaas(module: str, options: str) -> dict[str, str]:
    return {"sasl.jaas.config": f"some.package.{module} required {options};"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stores"))


def test_passwords_of_any_characters_arrive(tmp_path: Path) -> None:
    spoken = "a\"b\\c; d=${env:HOME} 'e"
    (tmp_path / "pw").write_text(spoken + "\n")
    config = admin_config(
        {**SCRAM, **jaas("ScramLoginModule", f'username=u password="${{file:{tmp_path}/pw}}"')}
    )
    assert config["sasl.username"] == "u"
    assert config["sasl.password"] == spoken
    assert config["sasl.mechanism"] == "SCRAM-SHA-512"


def test_a_whole_entry_may_be_a_reference(tmp_path: Path) -> None:
    entry = jaas("ScramLoginModule", r'username="u" password="p\"w"')["sasl.jaas.config"]
    (tmp_path / "jaas").write_text(entry)
    config = admin_config({**SCRAM, "sasl.jaas.config": f"${{file:{tmp_path}/jaas}}"})
    assert config["sasl.password"] == 'p"w'


def test_client_credentials() -> None:
    config = admin_config(
        {
            **OAUTH,
            **jaas(
                "OAuthBearerLoginModule", 'clientId="c" clientSecret="s" scope="k" extension_a="1"'
            ),
            "sasl.login.callback.handler.class": HANDLER,
            "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
        }
    )
    del config["bootstrap.servers"], config["security.protocol"]
    assert config == {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
        "sasl.oauthbearer.client.id": "c",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "k",
        "sasl.oauthbearer.extensions": "a=1",
    }


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "JKS"])
def test_stores_become_pem_in_memory(authority: Authority, kind: str) -> None:
    signed = authority.sign("ann")
    own = authority.keystore(signed, f"own-{kind}", kind)
    passwords = {} if kind == "PEM" else {
        f"ssl.{store}store.password": STORE_PASSWORD for store in ("key", "trust")
    }  # fmt: skip
    config = admin_config(
        {
            "bootstrap.servers": "b:1",
            "security.protocol": "SSL",
            "ssl.truststore.location": str(authority.truststore(kind)),
            "ssl.truststore.type": kind,
            "ssl.keystore.location": str(own),
            "ssl.keystore.type": kind,
            **passwords,
        }
    )
    assert config["ssl.ca.pem"].strip() == authority.root_pem.strip()
    assert config["ssl.key.pem"] == signed.key_pem()
    assert config["ssl.certificate.pem"].startswith(signed.certificate_pem().strip())
    assert config["ssl.endpoint.identification.algorithm"] == "https"


def test_inline_pem(authority: Authority) -> None:
    signed = authority.sign("ann")
    config = admin_config(
        {
            "bootstrap.servers": "b:1",
            "security.protocol": "SSL",
            "ssl.truststore.certificates": authority.root_pem.replace("\n", " "),
            "ssl.truststore.type": "PEM",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": signed.key_pem("key-pw"),
            "ssl.keystore.certificate.chain": signed.certificate_pem(),
            "ssl.key.password": "key-pw",
        }
    )
    assert config["ssl.key.pem"] == signed.key_pem()
    assert config["ssl.certificate.pem"] == signed.certificate_pem()


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"sasl.mechanism": "AWS_MSK_IAM"}, "AWS_MSK_IAM"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "ssl.cipher.suites"),
        (jaas("Krb5LoginModule", "useKeyTab=true"), "does not fit SASL mechanism"),
        (jaas("Krb5LoginModule", "useTicketCache=true"), "useTicketCache"),
        ({"sasl.kerberos.kinit.cmd": "/opt/kinit"}, "sasl.kerberos.kinit.cmd"),
        (jaas("ScramLoginModule", 'username="u" tokenauth="true"'), "tokenauth"),
        (jaas("ScramLoginModule", 'username="u"'), "no 'password'"),
        (jaas("PlainLoginModule", 'username="u" password="p" oops'), "not a JAAS entry"),
        (jaas("OAuthBearerLoginModule", 'clientId="c"'), "does not fit SASL mechanism"),
        ({}, "'sasl.jaas.config' is not set"),
        ({"ssl.truststore.certificates": "x", "security.protocol": "SSL"}, "'ssl.truststore.type'"),
        ({"sasl.login.callback.handler.class": "com.acme.Handler"}, "com.acme.Handler"),
    ],
)
def test_what_one_library_cannot_honour_is_refused_by_name(
    properties: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        admin_config({**SCRAM, **properties})
    assert refused.value.code == "KAFKA_PROPERTY"
    assert named in refused.value.message
    assert refused.value.hint


def kerberos(
    keytab: Path, options: str = 'useKeyTab=true principal="shop/h@R.TEST"'
) -> dict[str, str]:
    given = {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"}
    entry = jaas("Krb5LoginModule", f'{options} keyTab="{keytab}"')
    return {**SCRAM, **given, "sasl.kerberos.min.time.before.relogin": "5000", **entry}


def test_kerberos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b.keytab").touch()
    asked = kerberos(tmp_path / "a b.keytab")
    with pytest.raises(ConfigError, match=r"librdkafka that is installed has no Kerberos"):
        admin_config(asked)  # the wheel; tests/long/test_kerberos.py has one that can
    monkeypatch.setattr("spark_jobs.access.kerberos._has_gssapi", lambda: True)
    config = admin_config(asked)
    assert {name: value for name, value in config.items() if "kerberos" in name} == {
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": "shop/h@R.TEST",
        "sasl.kerberos.keytab": f"{tmp_path}/a b.keytab",
        "sasl.kerberos.min.time.before.relogin": "5000",
    }
    assert "--allow-principal 'User:shop'" in (
        acl_missing([Need("Read", "topic", "t", "")], asked).hint or ""
    )


@pytest.mark.parametrize(
    ("options", "keytab", "named"),
    [
        ("principal=a@B", "k", "useKeyTab=true"),
        ("useKeyTab=true", "k", "no principal"),
        ('useKeyTab=true principal="a;reboot@B"', "k", "letters, digits"),
        ("useKeyTab=true principal=a@B", "$(reboot)", "absolute path"),
        ("useKeyTab=true principal=a@B", "absent", "absent cannot be read"),
    ],
)
def test_what_kinit_could_not_use_is_refused(
    tmp_path: Path, options: str, keytab: str, named: str
) -> None:
    (tmp_path / "k").touch()
    with pytest.raises(ConfigError) as refused:
        admin_config(kerberos(tmp_path / keytab, options))
    assert refused.value.code == "KAFKA_PROPERTY"
    assert named in refused.value.message + (refused.value.hint or "")


def test_no_connection_property_is_dropped(authority: Authority) -> None:
    """Each one changes the configuration, or is a part of one that does."""
    tried = {
        "client.id": "x", "client.dns.lookup": "use_all_dns_ips", "connections.max.idle.ms": "9",
        "metadata.max.age.ms": "9", "receive.buffer.bytes": "9", "reconnect.backoff.max.ms": "9",
        "reconnect.backoff.ms": "9", "request.timeout.ms": "9", "retry.backoff.max.ms": "9",
        "retry.backoff.ms": "9", "send.buffer.bytes": "9",
        "socket.connection.setup.timeout.ms": "9",
        "ssl.endpoint.identification.algorithm": "",
    }  # fmt: skip
    base = {"bootstrap.servers": "b:1", "security.protocol": "SSL"}
    for name, value in tried.items():
        assert admin_config({**base, name: value}) != admin_config(base), name
    shown_above = {name for name in CONNECTION if name.startswith(("sasl.", "ssl."))}
    assert tried.keys() | shown_above | base.keys() == CONNECTION
    assert not CONNECTION & JAVA_ONLY
    assert admin_config({**base, **dict.fromkeys(JAVA_ONLY, "1")}) == admin_config(base)


def test_missing_servers() -> None:
    with pytest.raises(ConfigError, match="BOOTSTRAP_MISSING"):
        admin_config({})


@pytest.mark.parametrize(
    ("name", "java", "ours", "value"),
    [
        ("request.timeout.ms", "600000", "socket.timeout.ms", "300000"),
        ("connections.max.idle.ms", "-1", "connections.max.idle.ms", "0"),
        ("receive.buffer.bytes", "-1", "socket.receive.buffer.bytes", "0"),
        ("retry.backoff.ms", "0", "retry.backoff.ms", "1"),
        ("metadata.max.age.ms", "300000", "metadata.max.age.ms", "300000"),
    ],
)
def test_numbers_that_only_java_takes_become_the_nearest(
    name: str, java: str, ours: str, value: str
) -> None:
    config = admin_config({"bootstrap.servers": "b:1", name: java})
    assert config[ours] == value
    AdminClient({**config, "log_level": 0})  # refuses what is outside of its range
