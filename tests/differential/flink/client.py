"""The process in which Flink answers; it is started when first asked, and again after it hangs."""

import json
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.flink.install import PYTHON, install

_SERVER = Path(__file__).with_name("server.py")
# short jobs: what the second compiler and a second collector thread would do is never repaid
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx1g -Duser.timezone=UTC"
_TIMEOUT_S = 180.0


class FlinkProcess:
    """Flink in a process group of its own, so that nothing of it outlives this object."""

    def __init__(self, server: Path = _SERVER, arguments: Sequence[str] = ()) -> None:
        self._command = [str(PYTHON), "-I", str(server), *arguments]
        self._process: subprocess.Popen[str] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process

    def __enter__(self) -> "FlinkProcess":
        install()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        self._log.close()

    def ask(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of the server; an `error` as well if none comes in time."""
        process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise ValueError("Flink's process has no pipes")
        try:
            process.stdin.write(f"{json.dumps(asked, default=str)}\n")
            process.stdin.flush()
            with selectors.DefaultSelector() as ready:
                ready.register(process.stdout, selectors.EVENT_READ)
                line = process.stdout.readline() if ready.select(_TIMEOUT_S) else None
        except BrokenPipeError:
            line = ""
        except BaseException:  # Ctrl-C: the answer would be taken for that of the next question
            self._stop()
            raise
        if not line:
            self._stop()
            text = "Timeout: no answer" if line is None else f"Ended: {self._said()}"
            return {"error": text}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            ["/usr/bin/env", "TZ=UTC", f"JVM_ARGS={_JVM}", *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")[-1_000:]
