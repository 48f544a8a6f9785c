"""Java's own key stores (JKS), read without Java.

Layout: magic, version, count, entries, SHA-1 over the password and everything before. Trusted
certificates stand in it as they are; private keys are hidden by Sun's key protector, a stream of
SHA-1 digests over password and salt (sun.security.provider.KeyProtector).
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass
from itertools import count

MAGIC = b"\xfe\xed\xfe\xed"
_DIGEST = 20
_PRIVATE_KEY = 1


class BadStore(Exception):
    """The bytes are no such store, or the password is not its own."""


@dataclass(frozen=True, slots=True)
class Store:
    """All in DER: trusted certificates, and each private key (PKCS #8) with its chain."""

    trusted: tuple[bytes, ...]
    keys: tuple[tuple[bytes, tuple[bytes, ...]], ...]


def read_jks(data: bytes, password: str | None, key_password: str | None) -> Store:
    """Without a password the store's integrity is not checked, and its keys cannot be read."""
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
        reader.text()  # its alias
        reader.take(8)  # when it was made
        if kind != _PRIVATE_KEY:
            trusted.append(reader.certificate(version))
            continue
        hidden = reader.take(reader.number())
        chain = tuple(reader.certificate(version) for _ in range(reader.number()))
        if key_password is not None:
            keys.append((_reveal(hidden, key_password), chain))
    return Store(tuple(trusted), tuple(keys))


class _Reader:
    """Java's DataInputStream."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise struct.error("it ends too early")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def text(self) -> str:
        return self.take(struct.unpack(">H", self.take(2))[0]).decode()

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.text()  # its type, X.509
        return self.take(self.number())


def _reveal(hidden: bytes, password: str) -> bytes:
    """The key out of an EncryptedPrivateKeyInfo: an algorithm, then salt, key XOR stream, check."""
    sealed = _last_octets(hidden)
    salt, sealed, check = sealed[:_DIGEST], sealed[_DIGEST:-_DIGEST], sealed[-_DIGEST:]
    secret, stream, block = _utf16(password), b"", salt
    for _ in count():
        if len(stream) >= len(sealed):
            break
        block = _sha1(secret + block)
        stream += block
    key = bytes(a ^ b for a, b in zip(sealed, stream, strict=False))
    if not hmac.compare_digest(_sha1(secret + key), check):
        raise BadStore("the key's password is wrong")
    return key


def _last_octets(der: bytes) -> bytes:
    """SEQUENCE { SEQUENCE algorithm, OCTET STRING }: the octets."""
    _, inside = _der(der)
    algorithm_end, _ = _der(inside)
    return _der(inside[algorithm_end:])[1]


def _der(data: bytes) -> tuple[int, bytes]:
    """Where the first element ends, and what is in it."""
    size, at = data[1], 2
    if size & 0x80:
        at += size & 0x7F
        size = int.from_bytes(data[2:at], "big")
    return at + size, data[at : at + size]


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be")


def _sha1(data: bytes) -> bytes:
    """The format knows no other digest."""
    return hashlib.sha1(data, usedforsecurity=False).digest()
