"""`make e2e`: a database, its connector, a registry, a broker and a job; the answers compared.

Exit code 0 if the folded result topics equal PostgreSQL's answers and no record was rejected.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from tests.e2e.artifacts import ArtifactsMissing
from tests.e2e.postgres import programs
from tests.e2e.run import run

INTERRUPTED = 130


def main() -> int:
    options = _options()
    bin_folder = programs()
    if bin_folder is None:
        _say("e2e needs PostgreSQL; on Debian or Ubuntu: apt-get install postgresql")
        return 1
    signal.signal(signal.SIGTERM, _interrupt)
    folder = _folder(options.keep)
    done = False
    try:
        report = run(folder, bin_folder, options.format, options.seconds, options.seed, _say)
        for line in report.lines():
            _say(line)
        done = report.passed
    except KeyboardInterrupt:
        _say("interrupted; everything is stopped")
        done = True
        return INTERRUPTED
    except (ArtifactsMissing, RuntimeError) as problem:
        _say(str(problem))
    finally:
        if done and options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            _say(f"logs and topics are in {folder}")
    _say("EQUAL" if done else "FAILED")
    return 0 if done else 1


def _folder(keep: Path | None) -> Path:
    """Open to others, for the database server is another user."""
    if keep is None:
        folder = Path(tempfile.mkdtemp(prefix="rejoin-e2e-"))
    else:
        keep.mkdir(parents=True)
        folder = keep.resolve()
    folder.chmod(0o755)
    return folder


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')}  {text}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e", description=__doc__)
    parser.add_argument("--format", choices=["avro", "json"], default="avro")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long statements run")
    parser.add_argument("--seed", type=int, default=1, help="of the statements")
    parser.add_argument("--keep", type=Path, help="a new folder for all data, kept in any case")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
