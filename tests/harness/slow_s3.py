"""Stands between a driver and its S3 server: answers some requests with 503, holds up listings."""

import http.client
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

from spark_jobs.embedded.process import LOOPBACK
from tests.harness.http_server import body_of, serving

_SLOW_DOWN = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"""
_SIGNED_BY = re.compile(r"Credential=([^/]+)/")
_OF_THE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "server", "date", "expect"}

Headers = list[tuple[str, str]]


@dataclass
class SlowS3:
    """What the server does to those who ask it, and what it has seen.

    `refused`: share of the requests that are answered with 503. `listing_s`: seconds by which a
    listing is late. `signed_by`: requests by access key.
    """

    server_port: int
    refused: float
    listing_s: float
    refusals: int = 0
    listings: int = 0
    signed_by: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _random: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311

    def refuses(self, path: str, authorization: str) -> bool:
        """Note a request; whether it is refused."""
        with self._lock:
            if found := _SIGNED_BY.search(authorization):
                self.signed_by[found[1]] += 1
            self.listings += _is_listing(path)
            is_refused = self._random.random() < self.refused
            self.refusals += is_refused
        return is_refused

    def ask(
        self, method: str, path: str, headers: Headers, body: bytes
    ) -> tuple[int, Headers, bytes]:
        """What the server answers."""
        if _is_listing(path):
            time.sleep(self.listing_s)
        connection = http.client.HTTPConnection(LOOPBACK, self.server_port, timeout=60)
        try:
            connection.request(method, path, body, dict(_passed_on(headers)))
            answer = connection.getresponse()
            return answer.status, _passed_on(answer.getheaders()), answer.read()
        finally:
            connection.close()


@contextmanager
def slow_s3(slow: SlowS3) -> Iterator[str]:
    """Its address."""
    with serving(type("Handler", (_Handler,), {"slow": slow})) as address:
        yield address


class _Handler(BaseHTTPRequestHandler):
    slow: ClassVar[SlowS3]
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        body = body_of(self)
        if self.slow.refuses(self.path, self.headers.get("Authorization", "")):
            self._answer(503, [("Content-Type", "application/xml")], _SLOW_DOWN)
        else:
            self._answer(*self.slow.ask(self.command, self.path, self.headers.items(), body))

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

    def _answer(self, status: int, headers: Headers, body: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if all(name.lower() != "content-length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Requests are counted, not printed."""


def _is_listing(path: str) -> bool:
    return "list-type=" in path


def _passed_on(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in _OF_THE_CONNECTION]
