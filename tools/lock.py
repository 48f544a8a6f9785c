"""`make lock`: writes requirements*.txt from pyproject.toml, with the hashes of every file.

The lock files name packages, not the index that they came from.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = [
    "--quiet",
    "--strip-extras",
    "--generate-hashes",
    "--allow-unsafe",
    "--no-header",
    "--no-emit-options",
    "--no-emit-index-url",
    "--no-emit-trusted-host",
    "--no-emit-find-links",
]
LOCKS = {
    "requirements-build.txt": ["--all-build-deps", "--only-build-deps"],
    "requirements.txt": [],
    "requirements-dev.txt": ["--extra=dev", "--constraint=requirements.txt"],
}


def main() -> int:
    for name, what in LOCKS.items():
        command = [sys.executable, "-m", "piptools", "compile", *OPTIONS, *what]
        command += [f"--output-file={name}", "pyproject.toml", *sys.argv[1:]]
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            return 1
        path = ROOT / name
        path.write_text(f"# made by `make lock` from pyproject.toml\n{path.read_text().lstrip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
