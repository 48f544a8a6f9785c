"""Kerberos for librdkafka: the keytab of the JAAS entry, and whether this librdkafka has GSSAPI.

librdkafka gets its tickets with the program kinit, which it runs as a shell command with the names
of the principal and the keytab in it: a name that means something to a shell is refused.
"""

import re
from collections.abc import Mapping
from functools import cache

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from spark_jobs.errors import ConfigError
from spark_jobs.options.jaas import JaasEntry

_SERVICE = "sasl.kerberos.service.name"
_RELOGIN = "sasl.kerberos.min.time.before.relogin"
_PRINCIPAL = re.compile(r"[A-Za-z0-9._/@-]+", re.ASCII)
_KEYTAB = re.compile(r"/[^\"$`\\\n]*", re.ASCII)


def kerberos_config(java: Mapping[str, str], entry: JaasEntry) -> dict[str, str]:
    """librdkafka's configuration for GSSAPI; raises ConfigError if it cannot be used."""
    if entry.options.get("useKeyTab", "").lower() != "true":
        raise _refused(
            "the JAAS entry of Krb5LoginModule has no useKeyTab=true",
            "write it as 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
            'storeKey=true keyTab="/etc/kafka/shop.keytab" principal="shop@EXAMPLE.COM";\'',
        )
    keytab = _option(entry, "keyTab", _KEYTAB, "an absolute path without quotes, $ and `")
    principal = _option(entry, "principal", _PRINCIPAL, "letters, digits and . _ / @ -")
    if _SERVICE not in java:
        raise _refused(
            f"'{_SERVICE}' is not set",
            f"set 'properties.{_SERVICE}' to the first part of the brokers' principal: kafka",
        )
    _require_readable(keytab)
    _require_gssapi()
    config = {_SERVICE: java[_SERVICE], "sasl.kerberos.principal": principal}
    config["sasl.kerberos.keytab"] = keytab
    if _RELOGIN in java:
        config[_RELOGIN] = java[_RELOGIN]
    return config


def _option(entry: JaasEntry, name: str, allowed: re.Pattern[str], words: str) -> str:
    value = entry.options.get(name, "")
    if allowed.fullmatch(value) is None:
        raise _refused(
            f"the JAAS entry of Krb5LoginModule has no {name}, or one that is not {words}",
            f'add {name}="..." after the module',
        )
    return value


def _require_readable(keytab: str) -> None:
    try:
        with open(keytab, "rb"):
            pass
    except OSError as cause:
        raise _refused(
            f"the keytab {keytab} cannot be read: {cause.strerror}",
            "have the job's user read it; with executors, at the same path on their machines",
        ) from cause


def _require_gssapi() -> None:
    if not _has_gssapi():
        raise _refused(
            "the librdkafka that is installed has no Kerberos",
            "build one with Cyrus SASL and install confluent-kafka over it, as docs/security.md "
            "says, or use SCRAM, OAUTHBEARER or mutual TLS",
        )


@cache
def _has_gssapi() -> bool:
    """librdkafka refuses a configuration that asks for features it was built without."""
    try:
        AdminClient({"builtin.features": "sasl_gssapi", "log_level": 0})
    except KafkaException:
        return False
    return True


def _refused(message: str, hint: str) -> ConfigError:
    return ConfigError("KAFKA_PROPERTY", message, hint)
