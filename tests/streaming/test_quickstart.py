"""docs/quickstart.md, typed in block by block as a new user would."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_jobs.embedded.process import Child, free_ports

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "quickstart.md"
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
FILE_NAME = re.compile(r"(?:--|#) (\w+\.\w+)")
PROGRAMS = {"rejoin": (sys.executable, "-m", "spark_jobs.cli"), "python": (sys.executable,)}
TIMEOUT_S = 180.0
FOREGROUND = ("rejoin kafka", "rejoin run", "python watch.py")


def test_every_block_does_what_the_page_says(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    page = PAGE.read_text(encoding="utf-8").replace("9092", str(port))
    setup, *blocks = BLOCK.findall(page)
    assert "make setup" in setup[1]
    with _terminals(tmp_path) as terminals:
        for language, text in blocks:
            if language:
                name = FILE_NAME.match(text)
                assert name is not None, text
                (tmp_path / name[1]).write_text(text, encoding="utf-8")
            elif text.startswith("{"):
                _wait_for(text.splitlines(), terminals)
            else:
                for line in text.splitlines():
                    _type(line, tmp_path, terminals)


@contextmanager
def _terminals(folder: Path) -> Iterator[list[Child]]:
    """The commands that stay, in order; all are stopped at the end."""
    started: list[Child] = []
    try:
        yield started
    finally:
        for child in reversed(started):
            child.stop(60)


def _type(line: str, folder: Path, terminals: list[Child]) -> None:
    program, *words = re.findall(r"'([^']*)'|(\S+)", line)
    command = [*PROGRAMS["".join(program)], *("".join(word) for word in words)]
    places = ["env", "-C", str(folder), f"PYTHONPATH={ROOT}", "PYTHONUNBUFFERED=1"]
    if not line.startswith(FOREGROUND):
        done = subprocess.run(
            [*places, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return
    if line.startswith("rejoin run"):
        command.append("--no-sidecar")
    child = Child([*places, *command], folder / f"terminal_{len(terminals)}.log")
    terminals.append(child)
    if line.startswith("rejoin kafka"):
        _wait_for(["Kafka is ready"], terminals)


def _wait_for(lines: list[str], terminals: list[Child]) -> None:
    """Until the terminal opened last shows the lines."""
    deadline = time.monotonic() + TIMEOUT_S
    while not all(line in terminals[-1].log_tail(1000) for line in lines):
        for terminal in terminals:
            assert terminal.exit_code is None, terminal.log_tail(40)
        assert time.monotonic() < deadline, [t.log_tail(40) for t in terminals]
        time.sleep(0.2)
