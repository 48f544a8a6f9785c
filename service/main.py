"""`python -m service.main --status-dir DIR`: the sidecar as a process of its own."""

import argparse
import signal
import socket
import sys

import uvicorn
from fastapi import FastAPI

from service.driver import Driver
from service.routes import build_router
from service.settings import Settings, read_settings
from spark_jobs.errors import ConfigError, RejoinError

_GRACE_S = 2


def create_app(settings: Settings) -> FastAPI:
    """The application over one job's status directory; its pages load nothing from elsewhere."""
    app = FastAPI(title="rejoin sidecar", docs_url=None, redoc_url=None)
    app.include_router(build_router(Driver(settings.status_dir, settings.stale_after_s)))
    return app


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m service.main", description=__doc__)
    for name, field in Settings.model_fields.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, help=field.description, default=argparse.SUPPRESS)
    try:
        settings = read_settings(vars(parser.parse_args(arguments)))
        listener = _bind(settings.host, settings.port)
    except RejoinError as error:
        sys.stderr.write(error.render() + "\n")
        return error.exit_code
    host, port = listener.getsockname()[:2]
    sys.stdout.write(f"sidecar at http://{host}:{port}\n")
    sys.stdout.flush()
    config = uvicorn.Config(
        create_app(settings),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        # until uvicorn's handlers are there, and when it raises the signal again after its stop
        signal.signal(number, lambda *_: sys.exit(0))
    uvicorn.Server(config).run(sockets=[listener])
    return 0


def _bind(host: str, port: int) -> socket.socket:
    """Before the server starts, so that a taken port is one clear line."""
    try:
        return socket.create_server((host, port), backlog=128)
    except OSError as cause:
        raise ConfigError(
            "SIDECAR_PORT_IN_USE", f"cannot listen on {host}:{port}: {cause.strerror}"
        ) from cause


if __name__ == "__main__":
    sys.exit(main())
