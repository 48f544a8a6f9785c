"""Reads key and trust stores (JKS, PKCS12 or PEM, recognised by content) into memory.

Secrets stay in memory, with one exception: Python's ssl module loads a private key only from a
file, so the key is written encrypted with a random password and deleted at once.
"""

import os
import re
import secrets
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12PrivateKeyTypes

from spark_jobs.access import jks
from spark_jobs.errors import ConfigError

_KEYS = (
    rsa.RSAPrivateKey, dsa.DSAPrivateKey, ec.EllipticCurvePrivateKey,
    ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey,
)  # fmt: skip
_PEM = b"-----BEGIN "
_PEM_KEY = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.S
)
_PEM_LINE = re.compile(r"(-----(?:BEGIN|END) [A-Z0-9 ]+-----)")


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key with its certificate chain, its own certificate first."""

    key: PKCS12PrivateKeyTypes
    chain: tuple[x509.Certificate, ...]

    def chain_pem(self) -> str:
        return "".join(c.public_bytes(Encoding.PEM).decode() for c in self.chain)

    def key_pem(self, password: bytes | None = None) -> str:
        """The key as PEM, encrypted if there is a password, else a secret in plain text."""
        encryption = BestAvailableEncryption(password) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def read_trusted(data: bytes, password: str | None, what: str) -> str:
    """The certificates of a trust store as PEM. `what` names the store in errors."""
    try:
        if data.startswith(jks.MAGIC):
            store = jks.read_jks(data, password, None)
            found = [x509.load_der_x509_certificate(der) for der in store.trusted]
        elif _PEM in data:
            found = x509.load_pem_x509_certificates(data)
        else:
            opened = pkcs12.load_pkcs12(data, _bytes(password))
            found = [extra.certificate for extra in opened.additional_certs]
    except (ValueError, TypeError, jks.BadStore) as cause:
        raise _unreadable(what, str(cause)) from None
    if not found:
        raise _unreadable(what, "it has no trusted certificate")
    return "".join(c.public_bytes(Encoding.PEM).decode() for c in found)


def read_identity(
    data: bytes, password: str | None, key_password: str | None, what: str
) -> Identity:
    """The first private key of a key store, with its chain."""
    try:
        if data.startswith(jks.MAGIC):
            return _jks_identity(data, password, key_password)
        if _PEM in data:
            key = _PEM_KEY.search(data)
            if key is None:
                raise ValueError("it has no private key")
            return pem_identity(key[0], data, key_password, what)
        return _pkcs12_identity(data, password)
    except (ValueError, TypeError, jks.BadStore) as cause:
        raise _unreadable(what, str(cause)) from None


def pem_identity(key: bytes, chain: bytes, key_password: str | None, what: str) -> Identity:
    """An identity from a key and a chain in PEM, which may be the same text."""
    try:
        loaded = load_pem_private_key(key, _bytes(key_password))
        return Identity(_tls_key(loaded), tuple(x509.load_pem_x509_certificates(chain)))
    except (ValueError, TypeError) as cause:
        raise _unreadable(what, str(cause)) from None


def _jks_identity(data: bytes, password: str | None, key_password: str | None) -> Identity:
    store = jks.read_jks(data, password, key_password)
    if not store.keys:
        raise jks.BadStore("it has no private key that the password decrypts")
    der, chain = store.keys[0]
    certificates = tuple(x509.load_der_x509_certificate(c) for c in chain)
    return Identity(_tls_key(load_der_private_key(der, None)), certificates)


def _pkcs12_identity(data: bytes, password: str | None) -> Identity:
    opened = pkcs12.load_pkcs12(data, _bytes(password))
    if opened.key is None or opened.cert is None:
        raise ValueError("it has no private key")
    issuers = (extra.certificate for extra in opened.additional_certs)
    return Identity(_tls_key(opened.key), (opened.cert.certificate, *issuers))


def _tls_key(key: object) -> PKCS12PrivateKeyTypes:
    if isinstance(key, _KEYS):
        return key
    raise ValueError(f"a {type(key).__name__} cannot be used for TLS")


def read_store(path: str, what: str) -> bytes:
    """The content of a store's file."""
    try:
        return Path(path).read_bytes()
    except OSError as cause:
        raise _unreadable(what, str(cause)) from None


def pem_text(text: str) -> bytes:
    """PEM from an option value: Kafka allows blanks or `\\n` in place of line breaks.

    >>> pem_text("-----BEGIN X----- YWJj ZGVm -----END X-----")
    b'-----BEGIN X-----\\nYWJj\\nZGVm\\n-----END X-----\\n'
    """
    parts = _PEM_LINE.split(text.replace("\\n", "\n"))
    lines = [p if p.startswith("-----") else "\n".join(p.split()) for p in parts]
    return ("\n".join(line for line in lines if line) + "\n").encode()


def tls_context(trusted: str | None, identity: Identity | None) -> ssl.SSLContext:
    """A client's TLS context; without `trusted` it trusts the machine's certificates."""
    context = ssl.create_default_context(cadata=trusted)
    if identity is not None:
        _load_identity(context, identity)
    return context


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    password = secrets.token_hex(16)
    handle, name = tempfile.mkstemp(prefix="rejoin-", suffix=".pem")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(identity.key_pem(password.encode()) + identity.chain_pem())
        context.load_cert_chain(name, password=password)
    finally:
        Path(name).unlink()


def _bytes(password: str | None) -> bytes | None:
    return None if password is None else password.encode()


def _unreadable(what: str, why: str) -> ConfigError:
    return ConfigError(
        "STORE_UNREADABLE",
        f"{what} cannot be read: {why}",
        hint="give a JKS, PKCS12 or PEM file and its password",
    )
