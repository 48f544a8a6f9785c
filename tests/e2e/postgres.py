"""A PostgreSQL cluster of its own, from Debian's packages, on the loopback interface."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import psycopg

from spark_jobs.embedded.process import LOOPBACK, Child, free_ports

DATABASE = "shop"
USER = "postgres"
_PACKAGES = Path("/usr/lib/postgresql")
_START_TIMEOUT_S = 60.0
_STOP_GRACE_S = 20.0
_SETTINGS = {
    "wal_level": "logical",
    "shared_buffers": "64MB",
    "max_wal_senders": "4",
    "max_replication_slots": "4",
    "timezone": "UTC",
    "fsync": "off",  # nobody pulls the plug here
}


def programs() -> Path | None:
    """The folder of the newest installed version's programs."""
    found = [p for p in _PACKAGES.glob("*/bin") if (p / "initdb").is_file()]
    return max(found, key=lambda p: int(p.parent.name), default=None)


class Postgres:
    """The server over `folder`; as root it runs as the user `postgres`, for it refuses root."""

    def __init__(self, folder: Path, bin_folder: Path) -> None:
        self.folder = folder
        self._bin = bin_folder
        (self.port,) = free_ports(1)
        self._child: Child | None = None

    @property
    def log_path(self) -> Path:
        return self.folder / "postgres.log"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._child is None:
            raise RuntimeError("PostgreSQL does not run")
        return self._child.pid

    def start(self) -> None:
        """Return when it answers; raise RuntimeError with its log if it never does."""
        self.folder.mkdir()
        data = self.folder / "data"
        data.mkdir(mode=0o700)
        if os.getuid() == 0:
            shutil.chown(self.folder, USER)
            shutil.chown(data, USER)
        self._run("initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        self.resume()
        with self.connect(USER) as admin:
            admin.autocommit = True
            admin.execute(f"CREATE DATABASE {DATABASE}")  # a name of ours

    def resume(self) -> None:
        """Start again over the same data, at the same port."""
        data = self.folder / "data"
        command = [*self._as_owner(), self._bin / "postgres", "-D", data]
        command += ["-p", self.port, "-h", LOOPBACK, "-k", self.folder]
        for name, value in _SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        self._child = Child([str(part) for part in command], self.log_path)
        self._connect_patiently(self._child).close()

    @property
    def url(self) -> str:
        """The database as Java's drivers take it."""
        return f"jdbc:postgresql://{LOOPBACK}:{self.port}/{DATABASE}"

    def execute(self, *statements: str) -> None:
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def connect(self, database: str = DATABASE) -> psycopg.Connection:
        return psycopg.connect(host=LOOPBACK, port=self.port, user=USER, dbname=database)

    def stop(self) -> None:
        """The fast shutdown, which ends sessions; the processes' end by force after a grace."""
        if self._child is None:
            return
        if self._child.exit_code is None:
            data = self.folder / "data"
            self._run("pg_ctl", "-D", data, "-m", "fast", "-t", int(_STOP_GRACE_S), "stop")
        self._child.stop(_STOP_GRACE_S)
        self._child = None

    def _as_owner(self) -> list[str]:
        """`setpriv` becomes the program, so that its process id is the server's; a change of user
        clears the signal at the parent's death, hence it is set again."""
        if os.getuid() != 0:
            return []
        as_user = [f"--reuid={USER}", f"--regid={USER}", "--init-groups", "--reset-env"]
        return ["setpriv", *as_user, "--pdeathsig=QUIT"]

    def _run(self, program: str, *arguments: object) -> None:
        command = [*self._as_owner(), self._bin / program, *arguments]
        subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            check=True,
        )

    def _connect_patiently(self, child: Child) -> psycopg.Connection:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                return self.connect(USER)
            except psycopg.OperationalError:
                if child.exit_code is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start:\n{child.log_tail()}") from None
                child.wait(0.1)
