"""A TCP proxy in front of a broker that can lose its connections or stop passing bytes."""

import contextlib
import socket
import threading

LOOPBACK = "127.0.0.1"
_CHUNK = 1 << 18


class Proxy:
    """Listens on `port` and forwards to `target`, another port of this machine."""

    def __init__(self, port: int, target: int) -> None:
        self._target = target
        self._listener = socket.create_server((LOOPBACK, port), backlog=128)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._refuses = False
        self._flows = threading.Event()
        self._flows.set()
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def cut(self) -> None:
        """Drop every connection and let no new one through."""
        self._refuses = True
        with self._lock:
            for connection in self._open:
                _end(connection)

    def freeze(self) -> None:
        """Keep the connections, pass nothing on."""
        self._flows.clear()

    def restore(self) -> None:
        self._refuses = False
        self._flows.set()

    def close(self) -> None:
        self.cut()
        self._flows.set()
        _end(self._listener)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refuses:
                client.close()
                continue
            try:
                server = socket.create_connection((LOOPBACK, self._target), timeout=5)
            except OSError:  # the broker is down
                client.close()
                continue
            server.settimeout(None)
            with self._lock:
                self._open |= {client, server}
            for source, sink in ((client, server), (server, client)):
                with contextlib.suppress(OSError):  # cut meanwhile: its pump ends at once
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK):
                self._flows.wait()
                sink.sendall(chunk)
        for end in (source, sink):
            _end(end)
        with self._lock:
            self._open -= {source, sink}


def _end(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
