"""confluent-kafka over a librdkafka with GSSAPI, which its wheel does not have, built on demand.

Confluent's npm package contains the source of librdkafka.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

_HOME = Path(__file__).resolve().parents[2] / "build" / "kerberos-client"
_PYTHON = _HOME / "python"
_PACKAGE = "@confluentinc/kafka-javascript@1.10.1"
_SHA256 = "ada7d703bb1d3237e2292bfabf438d663b6160c9f1ac2a2406b5dc4257c81b66"
_FOLDER = "package/deps/librdkafka"
_CLIENT = "confluent-kafka==2.15.1"
_HEADERS = {"sasl/sasl.h": "libsasl2-dev", "openssl/ssl.h": "libssl-dev", "zlib.h": "zlib1g-dev"}


def missing_package() -> str | None:
    """Why it cannot be built here."""
    for program, package in (("g++", "build-essential"), ("npm", "npm")):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: {package})"
    for header, package in _HEADERS.items():
        if not (Path("/usr/include") / header).is_file():
            return f"{header} is not installed (Debian: {package})"
    if not any(Path("/usr/lib").glob("*/sasl2/libgssapiv2.so")):
        return "libgssapiv2 is not installed (Debian: libsasl2-modules-gssapi-mit)"
    return None


def kerberos_client() -> Path:
    """A folder for PYTHONPATH; takes about a minute the first time."""
    if not (_PYTHON / "confluent_kafka").is_dir():
        shutil.rmtree(_HOME, ignore_errors=True)
        _unpack()
        options = [f"--prefix={_HOME}", "--enable-gssapi", "--disable-curl", "--disable-zstd"]
        source = _HOME / _FOLDER
        _run(source, "bash", "configure", *options, "--disable-lz4-ext", "--disable-optimization")
        _run(source, "make", "-C", "src", "-j2", "lib")
        _run(source, "make", "-C", "src", "lib-install")
        # what pip keeps of an earlier build names the library of that folder
        pip = [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--no-deps"]
        _run(_HOME, *pip, "--no-binary=confluent-kafka", "--target", str(_PYTHON), _CLIENT)
    return _PYTHON


def _unpack() -> None:
    _HOME.mkdir(parents=True)
    _run(_HOME, "npm", "pack", "--silent", _PACKAGE)
    (file,) = _HOME.glob("*.tgz")
    if hashlib.sha256(file.read_bytes()).hexdigest() != _SHA256:
        raise RuntimeError(f"{_PACKAGE} is not the file that was pinned")
    with tarfile.open(file) as package:
        wanted = [m for m in package.getmembers() if m.name.startswith(f"{_FOLDER}/")]
        package.extractall(_HOME, wanted, filter="data")


def _run(folder: Path, *command: str) -> None:
    built = {"C_INCLUDE_PATH": f"{_HOME}/include", "LIBRARY_PATH": f"{_HOME}/lib"}
    built["LDFLAGS"] = f"-Wl,-rpath,{_HOME}/lib"
    line = ["env", *(f"{name}={value}" for name, value in built.items()), *command]
    ended = subprocess.run(
        line, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{ended.stdout[-2000:]}{ended.stderr}")
