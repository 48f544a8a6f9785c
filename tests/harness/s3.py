"""An S3 server in a process of its own: moto in server mode."""

import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.embedded.process import LOOPBACK, Child, free_ports

_START_S = 60.0
KEY, SECRET = "test-key", "test-secret"


@dataclass(frozen=True, slots=True)
class S3Server:
    """`port` is the server's; `bucket` exists."""

    port: int
    bucket: str
    child: Child

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def put(self, path: str, body: bytes = b"") -> None:
        request = urllib.request.Request(f"{self.url}/{path}", data=body, method="PUT")  # noqa: S310
        urllib.request.urlopen(request, timeout=30).close()  # noqa: S310

    def numbers(self, folder: str) -> list[int]:
        """The files of a folder of the bucket whose names are numbers."""
        query = urllib.parse.urlencode({"list-type": 2, "prefix": f"{folder}/"})
        address = f"{self.url}/{self.bucket}?{query}"
        with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310
            text = answer.read().decode()
        return [int(name) for name in re.findall(rf"<Key>{re.escape(folder)}/(\d+)</Key>", text)]

    def properties(self, address: str | None = None) -> dict[str, str]:
        """Spark's, without credentials; `address`: of what stands in front of the server."""
        return {
            "spark.hadoop.fs.s3a.endpoint": address or self.url,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """As long as the block lasts."""
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
    child = Child(command, folder / "moto.log")
    try:
        server = S3Server(port, f"bucket-{uuid.uuid4().hex[:8]}", child)
        _await(server)
        server.put(server.bucket)
        yield server
    finally:
        child.stop(5.0)


def _await(server: S3Server) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            urllib.request.urlopen(server.url, timeout=5).close()  # noqa: S310
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            assert time.monotonic() < deadline, server.child.log_tail(20)
            assert server.child.exit_code is None, server.child.log_tail(20)
            time.sleep(0.1)
