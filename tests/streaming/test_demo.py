"""`rejoin demo` as a person starts it: it verifies itself, and leaves nothing behind."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from spark_jobs.demo.json_encoding import JsonEncoding

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 240


def start_demo(temporary: Path, arguments: Sequence[str]) -> subprocess.Popen[str]:
    """With a folder for temporary files of its own, to see what it leaves there."""
    return subprocess.Popen(
        [
            "/usr/bin/env",
            f"TMPDIR={temporary}",
            sys.executable,
            "-m",
            "spark_jobs.cli",
            "demo",
            *arguments,
        ],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(demo: subprocess.Popen[str]) -> str:
    try:
        text, _ = demo.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        demo.terminate()
        text, _ = demo.communicate(timeout=60)
        pytest.fail(f"the demo did not end by itself:\n{text}")
    return text


def processes_naming(folder: Path) -> list[str]:
    """Command lines of the processes that work in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if str(folder) in command:
            found.append(command)
    return found


def check_nothing_left(folder: Path) -> None:
    deadline = time.monotonic() + 20
    while (left := processes_naming(folder)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []
    assert [p.name for p in folder.iterdir() if p.name.startswith("rejoin-demo")] == []


def test_every_row_is_verified_and_every_broken_record_a_dead_letter(tmp_path: Path) -> None:
    demo = start_demo(tmp_path, ["--seconds", "8", "--corrupt"])
    text = finish(demo)
    assert demo.returncode == 0, text
    assert "first joined row" in text
    assert "VERIFIED" in text
    counts = re.search(r"^(\d+) orders, (\d+) joined rows", text, re.MULTILINE)
    assert counts is not None, text
    assert int(counts[1]) == int(counts[2]) > 1_000
    assert re.search(rf"  {counts[1]} right .* 0 wrong   0 missing   0 doubled", text)
    assert re.search(r"in \d+/s  out \d+/s  lag \d+  state \d+ orders waiting", text)
    assert re.search(r"watermarks  .*join \d\d:\d\d:\d\d", text)
    assert "\x1b" not in text
    letters = re.search(r"dead letters: (\d+) of (\d+) broken records", text)
    assert letters is not None, text
    assert int(letters[1]) == int(letters[2]) >= len(JsonEncoding().broken_values())
    assert re.search(r"orders\[0\]@\d+ +json-malformed", text)
    assert re.search(r"products\[0\]@\d+ +debezium-no-envelope", text)
    assert r"b'\x00\x00\x01\xff\xfe\xc3('" in text
    check_nothing_left(tmp_path)


def test_in_avro_every_row_is_right_and_every_broken_record_a_dead_letter(tmp_path: Path) -> None:
    demo = start_demo(tmp_path, ["--avro", "--seconds", "4", "--corrupt"])
    text = finish(demo)
    assert demo.returncode == 0, text
    assert "VERIFIED" in text
    counts = re.search(r"^(\d+) orders, (\d+) joined rows", text, re.MULTILINE)
    assert counts is not None, text
    assert int(counts[1]) == int(counts[2]) > 500
    letters = re.search(r"dead letters: (\d+) of (\d+) broken records", text)
    assert letters is not None, text
    assert int(letters[1]) == int(letters[2]) > 0
    reasons = {"avro-bad-framing", "avro-unknown-schema-id", "avro-malformed", "unknown-op"}
    assert reasons <= set(re.findall(r"@\d+ +([a-z-]+)", text)), text
    check_nothing_left(tmp_path)


def test_ctrl_c_ends_everything(tmp_path: Path) -> None:
    demo = start_demo(tmp_path, [])
    assert demo.stdout is not None
    seen = ""
    for line in demo.stdout:
        seen += line
        if "verified" in line:
            break
    demo.send_signal(signal.SIGINT)
    seen += finish(demo)
    assert demo.returncode == 0, seen
    assert " 0 wrong   0 doubled" in seen
    check_nothing_left(tmp_path)
