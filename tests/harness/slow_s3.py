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
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from spark_jobs.embedded.process import LOOPBACK

_SLOW_DOWN = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"""
_SIGNED_BY = re.compile(r"Credential=([^/]+)/")
_OF_THE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "server", "date"}


@dataclass
class SlowS3:
    """What the server does to those who ask it, and what it has seen.

    `refused`: share of the requests that are answered with 503. `listing_s`: seconds by which a
    listing is late. `signed_by`: requests by access key.
    """

    server_port: int
    refused: float
    listing_s: float
    seed: int = 1
    port: int = 0
    refusals: int = 0
    listings: int = 0
    signed_by: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311

    def refuses(self, path: str, authorization: str) -> bool:
        """Note a request; whether it is refused."""
        with self._lock:
            if found := _SIGNED_BY.search(authorization):
                self.signed_by[found[1]] += 1
            self.listings += "list-type=" in path
            is_refused = self._random.random() < self.refused
            self.refusals += is_refused
        return is_refused


@contextmanager
def slow_s3(slow: SlowS3) -> Iterator[SlowS3]:
    """Serves on a port of its own as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = _body(self)
            if slow.refuses(self.path, self.headers.get("Authorization", "")):
                self._answer(503, [("Content-Type", "application/xml")], _SLOW_DOWN)
                return
            if "list-type=" in self.path:
                time.sleep(slow.listing_s)
            self._answer(*_ask(slow.server_port, self, body))

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            if not any(name.lower() == "content-length" for name, _ in headers):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    slow.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield slow
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _body(request: BaseHTTPRequestHandler) -> bytes:
    if request.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length", 0)))
    parts = []
    while size := int(request.rfile.readline().split(b";")[0], 16):
        parts.append(request.rfile.read(size))
        request.rfile.readline()
    request.rfile.readline()
    return b"".join(parts)


def _ask(
    port: int, request: BaseHTTPRequestHandler, body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    try:
        given = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in _OF_THE_CONNECTION | {"expect", "content-length"}
        }
        connection.request(request.command, request.path, body, given)
        answer = connection.getresponse()
        headers = [(n, v) for n, v in answer.getheaders() if n.lower() not in _OF_THE_CONNECTION]
        return answer.status, headers, answer.read()
    finally:
        connection.close()
