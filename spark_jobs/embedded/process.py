"""Child processes that never outlive this one, and waiting for the signal that ends a command."""

import atexit
import ctypes
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_PR_SET_PDEATHSIG = 1
LOOPBACK = "127.0.0.1"


class Child:
    """A process with its output in a log file; it dies when this one does, however that happens.

    The kernel sends the parent-death signal when the THREAD that forked ends, so a thread of its
    own starts the child and stays until the child has ended.
    """

    def __init__(self, command: Sequence[str], log_path: Path) -> None:
        self.log_path = log_path
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: Exception | None = None
        self._known = threading.Event()
        self._ended = threading.Event()
        self._owner = os.getpid()
        threading.Thread(target=self._own, name=f"owner-of-{command[0]}", daemon=True).start()
        self._known.wait()
        if self._failure is not None:
            raise self._failure
        atexit.register(self.stop, 5.0)

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; -N if signal N ended it."""
        return self._started.poll()

    def wait(self, timeout_s: float) -> bool:
        """Whether the process has ended within that time."""
        return self._ended.wait(timeout_s)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._send(signal.SIGKILL)
        self._ended.wait()
        atexit.unregister(self.stop)

    def stop(self, grace_s: float) -> None:
        """SIGTERM, then SIGKILL if it has not ended within `grace_s`."""
        if os.getpid() != self._owner:
            return  # a forked copy of the interpreter runs this at its own exit
        self._send(signal.SIGTERM)
        if not self._ended.wait(grace_s):
            self._send(signal.SIGKILL)
            self._ended.wait()
        atexit.unregister(self.stop)

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of its output without Java's stack frames."""
        text = self.log_path.read_text(encoding="utf-8", errors="replace")
        told = [line for line in text.splitlines() if not line.startswith("\tat ")]
        return "\n".join(told[-lines:])

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the process was never started")
        return self._process

    def _send(self, number: signal.Signals) -> None:
        if self.exit_code is None:
            self._started.send_signal(number)

    def _own(self) -> None:
        try:
            with self.log_path.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C is ours to answer, not the child's
                    preexec_fn=_dies_with(os.getpid()),
                )
        except Exception as failure:  # raised in the thread that waits for it
            self._failure = failure
            self._known.set()
            return
        self._known.set()
        self._process.wait()
        self._ended.set()


def _dies_with(parent: int) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def arm() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died between fork and prctl
            os._exit(1)

    return arm


def java_command() -> str:
    """The Java that Spark would use: $JAVA_HOME's, else the one on the PATH."""
    at_home = Path(os.path.expandvars("$JAVA_HOME")) / "bin" / "java"
    return str(at_home) if at_home.is_file() else (shutil.which("java") or "java")


def free_ports(count: int) -> list[int]:
    """Ports that are free on the loopback interface, all different.

    Below the range that outgoing connections take theirs from, so that none of those can take
    the port before the server binds it.
    """
    candidates = secrets.SystemRandom().sample(range(20_000, 32_000), 200)
    ports = [p for p in candidates if port_is_free(p)][:count]
    if len(ports) < count:
        raise OSError(f"fewer than {count} of 200 tried ports are free on {LOOPBACK}")
    return ports


def port_is_free(port: int) -> bool:
    try:
        socket.create_server((LOOPBACK, port)).close()
    except (OSError, OverflowError):  # the second: no such port
        return False
    return True


def port_answers(port: int) -> bool:
    """Whether somebody accepts connections there."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


class FolderLock:
    """At most one process (and one holder in it) works in a folder; freed when the process ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".lock"
        self._file: BinaryIO | None = None

    def acquire(self) -> bool:
        """False if somebody else holds it."""
        file = self._path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """SIGTERM and Ctrl-C set the event, instead of ending the process, inside the block.

    Only a main thread may install handlers; elsewhere the event is only there to be set by others.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    previous = [signal.signal(n, lambda *_: stop.set()) for n in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, previous, strict=True):
            signal.signal(number, handler)
