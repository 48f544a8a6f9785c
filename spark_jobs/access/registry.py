"""An HTTP client for a schema registry, configured by the options of a format.

The kernel's RegistryAccess.scala does the same for its own requests.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx

from spark_jobs.access.stores import read_identity, read_store, read_trusted, tls_context
from spark_jobs.errors import ConfigError
from spark_jobs.options.formats import RegistryOptions
from spark_jobs.settings import resolve_all


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """Addresses without credentials, and a client that sends the credentials."""

    urls: tuple[str, ...]
    client: httpx.Client


def registry_access(
    options: RegistryOptions, timeout_s: float, headers: Mapping[str, str]
) -> RegistryAccess:
    """The client that a format's options describe; they may hold references."""
    if not options.url:
        raise ConfigError("REGISTRY_URL_MISSING", "the format's 'url' is not set")
    known = _resolved(options)
    urls = [url.strip().rstrip("/") for url in str(known.url).split(",")]
    trusted = identity = None
    if path := known.truststore:
        what = "the registry's trust store 'ssl.truststore.location'"
        trusted = read_trusted(read_store(path, what), known.truststore_password, what)
    if path := known.keystore:
        what = "the registry's key store 'ssl.keystore.location'"
        password = known.keystore_password
        identity = read_identity(read_store(path, what), password, password, what)
    client = httpx.Client(
        timeout=timeout_s,
        headers={**headers, **_authorization(known, urls[0])},
        verify=tls_context(trusted, identity),
    )
    return RegistryAccess(tuple(_without_credentials(url) for url in urls), client)


def _resolved(options: RegistryOptions) -> RegistryOptions:
    values: dict[str, Any] = {f.name: getattr(options, f.name) for f in fields(options)}
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    return RegistryOptions(**{**values, **resolve_all(texts)})


def _authorization(options: RegistryOptions, url: str) -> dict[str, str]:
    user = options.user_info
    if user is None and options.credentials_source == "URL":
        parts = urlsplit(url)
        user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    if user is not None:
        return {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"}
    if token := options.token:
        return {"Authorization": f"Bearer {token}"}
    return {}


def _without_credentials(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
