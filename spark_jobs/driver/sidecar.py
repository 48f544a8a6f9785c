"""The process of the sidecar, and its port."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from spark_jobs.driver.console import Console
from spark_jobs.embedded.process import Child, free_ports, port_is_free
from spark_jobs.errors import ConfigError
from spark_jobs.settings import JobSettings

DEFAULT_SIDECAR_PORT = 9640
PORT_WAIT_S = 5.0
_POLL_S = 0.1


def check_port(settings: JobSettings) -> None:
    """Raise ConfigError if the declared port is taken.

    It waits a moment, because the sidecar of a killed driver ends a little later than the driver.
    """
    port = settings.sidecar_port
    if not settings.sidecar or port is None:
        return
    deadline = time.monotonic() + PORT_WAIT_S
    while not port_is_free(port):
        if time.monotonic() > deadline:
            raise ConfigError(
                "SIDECAR_PORT_IN_USE",
                f"the sidecar cannot listen on 127.0.0.1:{port}",
                hint="--no-sidecar, another --sidecar-port, or none for a free one",
            )
        time.sleep(_POLL_S)


@contextmanager
def sidecar(settings: JobSettings, console: Console) -> Iterator[None]:
    """Serve health and metrics inside the block."""
    if not settings.sidecar:
        yield
        return
    port = settings.sidecar_port
    if port is None:
        port = DEFAULT_SIDECAR_PORT if port_is_free(DEFAULT_SIDECAR_PORT) else free_ports(1)[0]
    command = [sys.executable, "-m", "service.main", "--port", str(port)]
    command += ["--status-dir", str(settings.status_dir)]
    child = Child(command, settings.status_dir / "sidecar.log")
    console.say(f"sidecar at http://127.0.0.1:{port} (health, metrics, state)")
    try:
        yield
    finally:
        child.stop(2.0)
