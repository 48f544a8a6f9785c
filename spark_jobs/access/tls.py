"""Translates what the properties of Kafka's Java client say about TLS to librdkafka.

Certificates and keys are passed as PEM in memory, so that no secret is written to disk.
"""

from collections.abc import Mapping

from spark_jobs.access.stores import (
    Identity,
    pem_identity,
    pem_text,
    read_identity,
    read_store,
    read_trusted,
)
from spark_jobs.errors import ConfigError


def tls_config(java: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's configuration for Java client properties without references.

    The result holds secrets; raises ConfigError for a store that cannot be read.
    """
    config: dict[str, str] = {}
    identification = java.get("ssl.endpoint.identification.algorithm", "https")
    config["ssl.endpoint.identification.algorithm"] = identification or "none"
    trusted = _trusted(java)
    if trusted is not None:
        config["ssl.ca.pem"] = trusted
    identity = _identity(java)
    if identity is not None:
        config["ssl.certificate.pem"] = identity.chain_pem()
        config["ssl.key.pem"] = identity.key_pem()
    return config


def _trusted(java: Mapping[str, str]) -> str | None:
    if inline := java.get("ssl.truststore.certificates"):
        _require_pem(java, "truststore", "ssl.truststore.certificates")
        return read_trusted(pem_text(inline), None, "'ssl.truststore.certificates'")
    data = _file(java, "truststore")
    password = java.get("ssl.truststore.password")
    return None if data is None else read_trusted(data, password, "'ssl.truststore.location'")


def _identity(java: Mapping[str, str]) -> Identity | None:
    key_password = java.get("ssl.key.password")
    if key := java.get("ssl.keystore.key"):
        _require_pem(java, "keystore", "ssl.keystore.key")
        chain = pem_text(java.get("ssl.keystore.certificate.chain", ""))
        return pem_identity(pem_text(key), chain, key_password, "'ssl.keystore.key'")
    data = _file(java, "keystore")
    if data is None:
        return None
    password = java.get("ssl.keystore.password")
    return read_identity(data, password, key_password, "'ssl.keystore.location'")


def _file(java: Mapping[str, str], store: str) -> bytes | None:
    name = f"ssl.{store}.location"
    if name not in java:
        return None
    data = read_store(java[name], f"'{name}'")
    if b"-----BEGIN " in data:
        _require_pem(java, store, name)
    return data


def _require_pem(java: Mapping[str, str], store: str, name: str) -> None:
    if java.get(f"ssl.{store}.type") != "PEM":
        raise ConfigError(
            "KAFKA_PROPERTY",
            f"'{name}' is PEM, but 'ssl.{store}.type' is {java.get(f'ssl.{store}.type', 'JKS')}",
            f"set 'properties.ssl.{store}.type' = 'PEM'",
        )
