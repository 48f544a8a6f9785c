"""`make lint`: runs all checks, shows all findings, and fails if there is one."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCALA_WIDTH = 120
KERNEL_BUILD = "spark_jobs.kernel.build"


def main() -> int:
    checks: list[tuple[str, Callable[[], str]]] = [
        ("ruff check", lambda: output_of("ruff", "check", "--quiet")),
        ("ruff format", lambda: output_of("ruff", "format", "--check", "--quiet")),
        ("mypy --strict", lambda: output_of("mypy", "--no-error-summary")),
        ("import-linter", lambda: output_of("lint-imports")),
        ("scalac -Xlint -Wunused -Werror", lambda: output_of("python", "-m", KERNEL_BUILD)),
        ("Scala text", lambda: "".join(f"{p}\n" for p in scala_text_problems())),
    ]
    failed = [name for name, check in checks if not passes(name, check)]
    return 1 if failed else 0


def passes(name: str, check: Callable[[], str]) -> bool:
    problems = check()
    sys.stdout.write(f"{'FAILED' if problems else 'ok':<7} {name}\n{problems}")
    sys.stdout.flush()
    return not problems


def output_of(program: str, *arguments: str) -> str:
    """The output of a program of this virtual environment if it fails, else nothing."""
    command = [str(Path(sys.executable).parent / program), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return f"{done.stdout}{done.stderr}".strip() + f"\n(exit code {done.returncode})\n"


def scala_text_problems() -> Iterator[str]:
    """Line width, tabs and trailing blanks, because there is no Scala formatter to enforce them."""
    for path in sorted((ROOT / "spark_jobs" / "kernel").rglob("*.scala")):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            where = f"{path.relative_to(ROOT)}:{number}"
            if len(line) > SCALA_WIDTH:
                yield f"{where}: {len(line)} columns, at most {SCALA_WIDTH}"
            if "\t" in line:
                yield f"{where}: tab"
            if line != line.rstrip():
                yield f"{where}: trailing blanks"


if __name__ == "__main__":
    sys.exit(main())
