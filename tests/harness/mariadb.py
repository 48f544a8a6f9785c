"""A MariaDB server of its own, from Debian's packages, on the loopback interface."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_jobs.embedded.process import LOOPBACK, Child, free_ports

DATABASE = "shop"
USER, GUEST, PASSWORD = "rejoin", "guest", "s'cret"
_OWNER = "mysql"
_START_TIMEOUT_S = 60.0
_STOP_GRACE_S = 20.0


def server() -> Path | None:
    """The server's program, which is not on the path of every user."""
    found = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    return Path(found) if found else None


class MariaDb:
    """The server over `folder`; as root it runs as the user `mysql`, for it refuses root.

    USER may read all of the database `shop`, and GUEST what it is granted; both have PASSWORD,
    which is in `password_file`.
    """

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder
        self._program = program
        (self.port,) = free_ports(1)
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """The database as Java's drivers take it."""
        return f"jdbc:mariadb://{LOOPBACK}:{self.port}/{DATABASE}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._child is None:
            raise RuntimeError("MariaDB does not run")
        return self._child.pid

    @property
    def password_file(self) -> Path:
        return self.folder / "password"

    def start(self) -> None:
        """Return when it answers; raise RuntimeError with its log if it never does."""
        self.folder.mkdir()
        self.password_file.write_text(PASSWORD, encoding="utf-8")
        if os.getuid() == 0:
            shutil.chown(self.folder, _OWNER)
        self._run(
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        )
        self.resume()
        quoted = PASSWORD.replace("'", "''")
        self._ask(
            f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4;"
            f"CREATE USER {USER} IDENTIFIED BY '{quoted}', {GUEST} IDENTIFIED BY '{quoted}';"
            f"GRANT SELECT ON {DATABASE}.* TO {USER};",
            database="",
        )

    def resume(self) -> None:
        """Start again over the same data, at the same port."""
        command = [*_as_owner(), self._program, "--no-defaults"]
        command += [f"--datadir={self.folder / 'data'}", f"--socket={self.folder / 'socket'}"]
        command += [f"--bind-address={LOOPBACK}", f"--port={self.port}", "--skip-name-resolve"]
        command += ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=2"]
        command += ["--sql-mode=", "--default-time-zone=+05:30"]  # neither may matter to a job
        child = Child([str(part) for part in command], self.folder / "mariadb.log")
        self._child = child
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            if child.exit_code is not None or time.monotonic() > deadline:
                raise RuntimeError(f"MariaDB did not start:\n{child.log_tail()}")
            child.wait(0.1)

    def execute(self, *statements: str) -> None:
        self._ask(";".join(statements))

    def count(self, status: str) -> int:
        """A counter of the server's status."""
        return int(self._ask(f"SHOW GLOBAL STATUS LIKE '{status}'").split()[1])

    def sessions(self, user: str) -> int:
        """How many connections a user has."""
        asked = f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{user}'"  # noqa: S608
        return int(self._ask(asked))

    def waiting(self) -> int:
        """How many queries of USER wait for a lock."""
        asked = f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{USER}'"  # noqa: S608
        return int(self._ask(f"{asked} AND state LIKE 'Waiting for table%'"))

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        """Nobody else reads the table inside of it."""
        with subprocess.Popen(
            [*self._client(), "--unbuffered", DATABASE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as holder:
            if holder.stdin is None or holder.stdout is None:
                raise RuntimeError("the client has no pipes")
            holder.stdin.write(f"LOCK TABLES {table} WRITE; SELECT 'locked';\n")
            holder.stdin.flush()
            if holder.stdout.readline() != "locked\n":
                raise RuntimeError(f"{table} is not locked")
            yield  # Popen closes the pipes, which ends the client and its lock

    def kill(self) -> None:
        """Its end by force, as when its machine fails."""
        if self._child is not None:
            self._child.kill()
        self._child = None

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(_STOP_GRACE_S)
        self._child = None

    def _answers(self) -> bool:
        try:
            self._ask("SELECT 1", database="")
        except RuntimeError:
            return False
        return True

    def _ask(self, statements: str, database: str = DATABASE) -> str:
        """What its own client prints; it gets the statements as root, by the socket."""
        done = subprocess.run(
            [*self._client(), *([database] if database else [])],
            input=statements,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout

    def _client(self) -> list[str]:
        command = ["mariadb", "--no-defaults", f"--socket={self.folder / 'socket'}", "--user=root"]
        return [*command, "--batch", "--skip-column-names", "--default-character-set=utf8mb4"]

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*_as_owner(), program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr}")


def _as_owner() -> list[str]:
    """`setpriv` becomes the program, so that its process id is the server's; a change of user
    clears the signal at the parent's death, hence it is set again."""
    if os.getuid() != 0:
        return []
    as_user = [f"--reuid={_OWNER}", f"--regid={_OWNER}", "--init-groups", "--reset-env"]
    return ["setpriv", *as_user, "--pdeathsig=KILL"]
