"""An HTTP client for a schema registry, configured by the options of Flink's avro-confluent.

The kernel's RegistryAccess.scala does the same for its own requests.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import httpx

from spark_jobs.access.stores import read_identity, read_store, read_trusted, tls_context
from spark_jobs.errors import ConfigError
from spark_jobs.settings import resolve_all


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """Addresses without credentials, and a client that sends the credentials."""

    urls: tuple[str, ...]
    client: httpx.Client


def registry_access(
    options: Mapping[str, str], timeout_s: float, headers: Mapping[str, str]
) -> RegistryAccess:
    """Create the client from a format's options, which may have references."""
    if not options.get("url"):
        raise ConfigError("REGISTRY_URL_MISSING", "'avro-confluent.url' is not set")
    given = resolve_all(options)
    urls = [url.strip().rstrip("/") for url in given["url"].split(",")]
    trusted = identity = None
    if path := given.get("ssl.truststore.location"):
        what = "the registry's trust store 'ssl.truststore.location'"
        trusted = read_trusted(read_store(path, what), given.get("ssl.truststore.password"), what)
    if path := given.get("ssl.keystore.location"):
        what = "the registry's key store 'ssl.keystore.location'"
        password = given.get("ssl.keystore.password")
        identity = read_identity(read_store(path, what), password, password, what)
    client = httpx.Client(
        timeout=timeout_s,
        headers={**headers, **_authorization(given, urls[0])},
        verify=tls_context(trusted, identity),
    )
    return RegistryAccess(tuple(_without_credentials(url) for url in urls), client)


def _authorization(options: Mapping[str, str], url: str) -> dict[str, str]:
    user = options.get("basic-auth.user-info")
    if user is None and options.get("basic-auth.credentials-source") == "URL":
        parts = urlsplit(url)
        user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    if user is not None:
        return {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"}
    if token := options.get("bearer-auth.token"):
        return {"Authorization": f"Bearer {token}"}
    return {}


def _without_credentials(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
