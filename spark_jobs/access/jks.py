"""Reads Java key stores (JKS) without Java.

Layout: magic, version, count, entries, and a SHA-1 digest of the password and all of that. Trusted
certificates are stored in plain form. Private keys are XORed with a stream of SHA-1 digests of
password and salt (sun.security.provider.KeyProtector).
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass

MAGIC = b"\xfe\xed\xfe\xed"
_DIGEST = 20
_PRIVATE_KEY = 1


class BadStore(Exception):
    """The bytes are no JKS store, or the password is wrong."""


@dataclass(frozen=True, slots=True)
class Store:
    """Trusted certificates and private keys (PKCS #8) with their chains, all in DER."""

    trusted: tuple[bytes, ...]
    keys: tuple[tuple[bytes, tuple[bytes, ...]], ...]


def read_jks(data: bytes, password: str | None, key_password: str | None) -> Store:
    """Read a store; without a password its integrity is not checked and its keys are left out."""
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if password is not None:
        ours = _sha1(_utf16(password) + b"Mighty Aphrodite" + body)
        if not hmac.compare_digest(ours, digest):
            raise BadStore("the password is wrong, or the file is damaged")
    try:
        return _entries(_Reader(body[len(MAGIC) :]), key_password or password)
    except (struct.error, UnicodeDecodeError) as cause:
        raise BadStore(f"the file is damaged: {cause}") from cause


def _entries(reader: "_Reader", key_password: str | None) -> Store:
    version, entries = reader.number(), reader.number()
    trusted: list[bytes] = []
    keys: list[tuple[bytes, tuple[bytes, ...]]] = []
    for _ in range(entries):
        kind = reader.number()
        reader.text()  # alias
        reader.take(8)  # creation time
        if kind != _PRIVATE_KEY:
            trusted.append(reader.certificate(version))
            continue
        encrypted = reader.take(reader.number())
        chain = tuple(reader.certificate(version) for _ in range(reader.number()))
        if key_password is not None:
            keys.append((_decrypt(encrypted, key_password), chain))
    return Store(tuple(trusted), tuple(keys))


class _Reader:
    """Reads the types that Java's DataOutputStream writes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise struct.error("unexpected end of data")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def text(self) -> str:
        return self.take(struct.unpack(">H", self.take(2))[0]).decode()

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.text()  # type: X.509
        return self.take(self.number())


def _decrypt(encrypted: bytes, password: str) -> bytes:
    """The key in an EncryptedPrivateKeyInfo, whose octets are salt, key XOR stream, and digest."""
    body = _last_octets(encrypted)
    salt, body, check = body[:_DIGEST], body[_DIGEST:-_DIGEST], body[-_DIGEST:]
    secret, stream, block = _utf16(password), b"", salt
    while len(stream) < len(body):
        block = _sha1(secret + block)
        stream += block
    key = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if not hmac.compare_digest(_sha1(secret + key), check):
        raise BadStore("the password of the key is wrong")
    return key


def _last_octets(der: bytes) -> bytes:
    """The octets of DER `SEQUENCE { SEQUENCE algorithm, OCTET STRING }`."""
    _, inside = _der(der)
    algorithm_end, _ = _der(inside)
    return _der(inside[algorithm_end:])[1]


def _der(data: bytes) -> tuple[int, bytes]:
    """The end of the first DER element, and its content."""
    size, at = data[1], 2
    if size & 0x80:
        at += size & 0x7F
        size = int.from_bytes(data[2:at], "big")
    return at + size, data[at : at + size]


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be")


def _sha1(data: bytes) -> bytes:
    """SHA-1, because the format allows no other digest."""
    return hashlib.sha1(data, usedforsecurity=False).digest()
