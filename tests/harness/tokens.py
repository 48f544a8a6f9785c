"""A token endpoint of OAuth 2: client credentials in, signed tokens out, and their public key."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

from spark_jobs.embedded.broker_security import TokenIssuer
from tests.harness.http_server import body_of, serving

_AUDIENCE = "kafka"
_KEY_ID = "of-this-run"


@dataclass(slots=True)
class TokenEndpoint:
    """`clients` maps ids to secrets; `issued_at` has the time of each token, in order."""

    clients: dict[str, str]
    lifetime_s: int
    url: str = ""
    issued_at: list[float] = field(default_factory=list)
    _key: RSAPrivateKey = field(default_factory=lambda: generate_private_key(65537, 2048))

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    def issuer(self) -> TokenIssuer:
        """What a broker has to know."""
        return TokenIssuer(self.url, f"{self.url}/jwks", _AUDIENCE, self.lifetime_s)

    def keys(self) -> dict[str, Any]:
        """The public key as a JSON Web Key Set (RFC 7517)."""
        numbers = self._key.public_key().public_numbers()
        modulus, exponent = (_base64(_bytes(n)) for n in (numbers.n, numbers.e))
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID}
        return {"keys": [{**key, "n": modulus, "e": exponent}]}

    def token(self, client: str) -> dict[str, Any]:
        """The answer to a request for client credentials (RFC 6749, 4.4)."""
        issued_at = time.time()
        now = int(issued_at)
        header = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        claims = {"iss": self.url, "aud": _AUDIENCE, "sub": client, "iat": now}
        claims |= {"exp": now + self.lifetime_s, "scope": "topics"}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
        signature = _base64(self._key.sign(signed.encode(), PKCS1v15(), SHA256()))
        self.issued_at.append(issued_at)
        answer = {"access_token": f"{signed}.{signature}", "token_type": "Bearer"}
        return {**answer, "expires_in": self.lifetime_s}


@contextmanager
def token_endpoint(clients: dict[str, str], lifetime_s: int = 300) -> Iterator[TokenEndpoint]:
    """On a free port of this machine."""
    endpoint = TokenEndpoint(clients, lifetime_s)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, endpoint.keys())

        def do_POST(self) -> None:
            body_of(self)
            kind, _, encoded = self.headers.get("Authorization", "").partition(" ")
            client, _, secret = base64.b64decode(encoded).decode().partition(":")
            if kind == "Basic" and secret and endpoint.clients.get(client) == secret:
                self._answer(200, endpoint.token(client))
            else:
                self._answer(401, {"error": "invalid_client"})

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is said."""

    with serving(Handler) as endpoint.url:
        yield endpoint


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
