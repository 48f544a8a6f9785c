"""Child processes that end with this one, free ports, folder locks and stop signals."""

import atexit
import ctypes
import fcntl
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO

_PR_SET_PDEATHSIG = 1
LOOPBACK = "127.0.0.1"


class Child:
    """A child process that logs to a file and is killed when this process ends, even by a crash.

    Linux sends the parent-death signal when the THREAD that forked ends. Therefore a separate
    thread starts the child and waits until it has ended.
    """

    def __init__(self, command: Sequence[str], log_path: Path) -> None:
        self.log_path = log_path
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: Exception | None = None
        self._started_or_failed = threading.Event()
        self._ended = threading.Event()
        self._owner_pid = os.getpid()
        threading.Thread(target=self._run, name=f"owner-of-{command[0]}", daemon=True).start()
        self._started_or_failed.wait()
        if self._failure is not None:
            raise self._failure
        atexit.register(self.stop, 5.0)

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def exit_code(self) -> int | None:
        """None while the process runs; -N if signal N ended it."""
        return self._started.poll()

    def wait(self, timeout_s: float) -> bool:
        """Whether the process has ended within that time."""
        return self._ended.wait(timeout_s)

    def kill(self) -> None:
        """Send SIGKILL, which has the effect of a crash."""
        self._send(signal.SIGKILL)
        self._ended.wait()
        atexit.unregister(self.stop)

    def stop(self, grace_s: float) -> None:
        """SIGTERM, then SIGKILL if it has not ended within `grace_s`."""
        if os.getpid() != self._owner_pid:
            return  # this is a fork of the interpreter, whose exit handlers are copies
        self._send(signal.SIGTERM)
        if not self._ended.wait(grace_s):
            self._send(signal.SIGKILL)
            self._ended.wait()
        atexit.unregister(self.stop)

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of its output, without Java's stack frames."""
        text = self.log_path.read_text(encoding="utf-8", errors="replace")
        kept = [line for line in text.splitlines() if not line.startswith("\tat ")]
        return "\n".join(kept[-lines:])

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the process was never started")
        return self._process

    def _send(self, number: signal.Signals) -> None:
        if self.exit_code is None:
            self._started.send_signal(number)

    def _run(self) -> None:
        try:
            with self.log_path.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C in the terminal must not reach the child
                    preexec_fn=_death_signal_setter(os.getpid()),
                )
        except Exception as failure:  # raised again in the thread that created the Child
            self._failure = failure
            self._started_or_failed.set()
            return
        self._started_or_failed.set()
        self._process.wait()
        self._ended.set()


def _death_signal_setter(parent: int) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died between fork and prctl
            os._exit(1)

    return set_death_signal


def free_ports(count: int) -> list[int]:
    """Different ports that are free on the loopback interface.

    They lie below the range of ephemeral ports, so that no outgoing connection can take one
    before the server binds it.
    """
    candidates = secrets.SystemRandom().sample(range(20_000, 32_000), 200)
    ports = [p for p in candidates if port_is_free(p)][:count]
    if len(ports) < count:
        raise OSError(f"fewer than {count} of 200 random ports are free on {LOOPBACK}")
    return ports


def port_is_free(port: int) -> bool:
    try:
        socket.create_server((LOOPBACK, port)).close()
    except (OSError, OverflowError):  # OverflowError: not a valid port number
        return False
    return True


def port_answers(port: int) -> bool:
    """Whether the port accepts connections."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


class FolderLock:
    """Lets at most one holder use a folder; released when its process ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".lock"
        self._file: BinaryIO | None = None

    def acquire(self) -> bool:
        """Returns False if another holder has the lock."""
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
    """Inside the block, SIGTERM and Ctrl-C set the event instead of ending the process.

    Only the main thread can install signal handlers; in other threads no signal sets the event.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    # the thread that a handler interrupts may hold the event's lock: another one sets the event
    signals: SimpleQueue[int | None] = SimpleQueue()
    setter = threading.Thread(target=_set_at_signals, args=(signals, stop), daemon=True)
    setter.start()
    numbers = (signal.SIGTERM, signal.SIGINT)
    previous = [signal.signal(n, lambda number, _: signals.put(number)) for n in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, previous, strict=True):
            signal.signal(number, handler)
        signals.put(None)
        setter.join()


def _set_at_signals(signals: SimpleQueue[int | None], stop: threading.Event) -> None:
    while signals.get() is not None:
        stop.set()
