"""Translates the properties of Kafka's Java client to librdkafka: same broker, same user."""

import re
from collections.abc import Mapping

from spark_jobs.access.kerberos import kerberos_config
from spark_jobs.errors import ConfigError
from spark_jobs.options.client_properties import CLIENT_CREDENTIALS, REFUSED, value_problem
from spark_jobs.options.jaas import JaasEntry, parse_jaas
from spark_jobs.settings import resolve_all

_RENAMED = {
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
}
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_COMMON = (
    "bootstrap.servers", "client.dns.lookup", "client.id", "connections.max.idle.ms",
    "metadata.max.age.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
    "retry.backoff.max.ms", "retry.backoff.ms", "sasl.mechanism", "security.protocol",
    "socket.connection.setup.timeout.ms",
)  # fmt: skip
_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
    "GSSAPI": "Krb5LoginModule",
}

# ranges that librdkafka accepts; Java's client accepts more, such as -1 for "never"
_RANGES = {
    "socket.receive.buffer.bytes": (0, 100_000_000),
    "socket.send.buffer.bytes": (0, 100_000_000),
    "socket.timeout.ms": (10, 300_000),
    "connections.max.idle.ms": (0, 2_147_483_647),
    "metadata.max.age.ms": (1, 86_400_000),
    "reconnect.backoff.max.ms": (0, 3_600_000),
    "reconnect.backoff.ms": (0, 3_600_000),
    "retry.backoff.max.ms": (1, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "socket.connection.setup.timeout.ms": (1000, 2_147_483_647),
}


def admin_config(properties: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's configuration for Java client properties, which may have references.

    The result holds secrets.

    >>> jaas = 'x.ScramLoginModule required username="u" password="p";'
    >>> admin_config({"bootstrap.servers": "b:1", "sasl.mechanism": "SCRAM-SHA-512",
    ...     "security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": jaas, "acks": "all"}
    ... )["sasl.username"]
    'u'
    """
    java = resolve_all(properties)
    if "bootstrap.servers" not in java:
        raise ConfigError("BOOTSTRAP_MISSING", "'properties.bootstrap.servers' is not set")
    for name, value in java.items():
        if name in REFUSED:
            raise _refused(f"Kafka property '{name}' cannot be set", REFUSED[name])
        if (problem := value_problem(name, value)) is not None:
            raise _refused(*problem)
    config = {name: java[name] for name in _COMMON if name in java}
    config |= {ours: java[name] for name, ours in _RENAMED.items() if name in java}
    config |= {name: _clamped(config[name], *_RANGES[name]) for name in _RANGES if name in config}
    protocol = java.get("security.protocol", "PLAINTEXT")
    if protocol in ("SSL", "SASL_SSL"):
        # reads certificates with a library of 8 MB, which other protocols do without
        from spark_jobs.access.tls import tls_config

        config |= tls_config(java)
    if protocol.startswith("SASL"):
        config |= _sasl(java)
    return config


def _clamped(value: str, least: int, most: int) -> str:
    """A number within the range; other text is kept for librdkafka to refuse."""
    return str(min(max(int(value), least), most)) if _NUMBER.fullmatch(value) else value


def _sasl(java: Mapping[str, str]) -> dict[str, str]:
    mechanism = java.get("sasl.mechanism")
    if mechanism is None:
        raise _refused(
            "'sasl.mechanism' is not set",
            "set 'properties.sasl.mechanism' to SCRAM-SHA-512, PLAIN, OAUTHBEARER or GSSAPI",
        )
    entry = parse_jaas(java.get("sasl.jaas.config", ""))
    if entry is None:
        raise _refused("'sasl.jaas.config' is not set", "set it: login module, user, password")
    if entry.module != _MODULES[mechanism]:
        raise _refused(
            f"{entry.module} does not fit SASL mechanism {mechanism}", f"use {_MODULES[mechanism]}"
        )
    if mechanism == "OAUTHBEARER":
        return _oauth(java, entry)
    if mechanism == "GSSAPI":
        return kerberos_config(java, entry)
    user, password = (_jaas_option(entry, name) for name in ("username", "password"))
    return {"sasl.username": user, "sasl.password": password}


def _oauth(java: Mapping[str, str], entry: JaasEntry) -> dict[str, str]:
    if java.get("sasl.login.callback.handler.class") not in CLIENT_CREDENTIALS:
        return _unsecured_token(entry)
    if "sasl.oauthbearer.token.endpoint.url" not in java:
        raise _refused(
            "'sasl.oauthbearer.token.endpoint.url' is not set",
            "set it to the address that issues tokens to the login callback handler",
        )
    config = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": java["sasl.oauthbearer.token.endpoint.url"],
        "sasl.oauthbearer.client.id": _jaas_option(entry, "clientId"),
        "sasl.oauthbearer.client.secret": _jaas_option(entry, "clientSecret"),
    }
    if scope := entry.options.get("scope"):
        config["sasl.oauthbearer.scope"] = scope
    extensions = [
        f"{name.removeprefix('extension_')}={value}"
        for name, value in entry.options.items()
        if name.startswith("extension_")
    ]
    if extensions:
        config["sasl.oauthbearer.extensions"] = ",".join(extensions)
    return config


def _unsecured_token(entry: JaasEntry) -> dict[str, str]:
    """Unsigned tokens for tests, which both clients make from a user name."""
    claims = [f"principal={_jaas_option(entry, 'unsecuredLoginStringClaim_sub')}"]
    if scope := entry.options.get("unsecuredLoginListClaim_scope"):
        claims.append(f"scope={scope.strip(',')}")
    if seconds := entry.options.get("unsecuredLoginLifetimeSeconds"):
        claims.append(f"lifeSeconds={seconds}")
    return {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": " ".join(claims),
    }


def _jaas_option(entry: JaasEntry, name: str) -> str:
    if name not in entry.options:
        raise _refused(
            f"the JAAS entry of {entry.module} has no '{name}'",
            f'add {name}="..." after the module; for a secret, {name}="${{file:...}}"',
        )
    return entry.options[name]


def _refused(message: str, hint: str) -> ConfigError:
    return ConfigError("KAFKA_PROPERTY", message, hint)
