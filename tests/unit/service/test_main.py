"""The sidecar as a process: where it listens, how it ends, what it says when it cannot start."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from service.main import main
from service.settings import read_settings
from spark_jobs.errors import ConfigError


@pytest.mark.service
def test_serves_until_sigterm(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "service.main", "--status-dir", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = line.removeprefix("sidecar at ").strip()
            assert address.startswith("http://127.0.0.1:")
            assert httpx.get(f"{address}/health/live", timeout=10).status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()


def test_a_taken_port_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["--status-dir", str(tmp_path), "--port", str(port)]) == 2
    assert capsys.readouterr().err.startswith(
        f"SIDECAR_PORT_IN_USE cannot listen on 127.0.0.1:{port}"
    )


def test_wrong_settings_are_named_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", "x"]) == 2
    error = capsys.readouterr().err
    assert "status_dir" in error
    assert "port" in error


def test_environment_then_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REJOIN_SIDECAR_STATUS_DIR", str(tmp_path))
    monkeypatch.setenv("REJOIN_SIDECAR_PORT", "1234")
    assert read_settings({}).port == 1234
    settings = read_settings({"port": "4321"})
    assert (settings.status_dir, settings.port, settings.host) == (tmp_path, 4321, "127.0.0.1")
    with pytest.raises(ConfigError):
        read_settings({"port": "70000"})


def test_the_sidecar_needs_no_spark() -> None:
    check = "import service.main, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], timeout=60, check=False).returncode == 0
