"""Runs the sidecar: `python -m service.main --status-dir DIR`."""

import argparse
import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI

from service.admin import build_admin
from service.driver import Driver
from service.history import EVERY_S, History
from service.page_routes import build_page
from service.routes import build_router
from service.settings import Settings, read_settings
from service.topics.routes import build_broker_router
from spark_jobs import __version__
from spark_jobs.errors import ConfigError, RejoinError

_GRACE_S = 2


def create_app(settings: Settings) -> FastAPI:
    """The application for one status folder; its pages load nothing from other hosts."""
    driver = Driver(settings.status_dir, settings.stale_after_s)
    history = History()
    app = FastAPI(
        title="rejoin sidecar",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lambda _: _watching(driver, history),
    )
    app.include_router(build_router(driver, history))
    app.include_router(build_broker_router(driver, settings))
    app.include_router(build_admin(settings.status_dir, settings.token_file, settings.hidden))
    app.include_router(build_page())
    return app


@contextlib.asynccontextmanager
async def _watching(driver: Driver, history: History) -> AsyncIterator[None]:
    """Collects history in the background, also while there are no requests."""

    async def watch() -> None:
        while True:
            history.add(driver.look().status)
            await asyncio.sleep(EVERY_S)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; returns the exit code."""
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
        proxy_headers=False,  # the client is the peer of the connection, whatever a header says
        timeout_graceful_shutdown=_GRACE_S,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        # for signals before uvicorn has its handlers, and the one that it raises again at its end
        signal.signal(number, lambda *_: sys.exit(0))
    uvicorn.Server(config).run(sockets=[listener])
    return 0


def _bind(host: str, port: int) -> socket.socket:
    """Bind before the server starts, so that a port in use is one clear error line."""
    try:
        return socket.create_server((host, port), backlog=128)
    except OSError as cause:
        raise ConfigError(
            "SIDECAR_PORT_IN_USE", f"cannot listen on {host}:{port}: {cause.strerror}"
        ) from cause


if __name__ == "__main__":
    sys.exit(main())
