"""An HTTP server of a test's own, up at once and down at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_POLL_S = 0.02  # the standard library's half a second is what each stop would take


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def body_of(request: BaseHTTPRequestHandler) -> bytes:
    """All of it, however it is sent."""
    if request.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length", 0)))
    read = b""
    while size := int(request.rfile.readline().split(b";")[0], 16):
        read += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return read
