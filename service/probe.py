"""`python -m service.probe --status-dir DIR`: exit code 0 while the driver is alive.

For a container's health check, because the driver has no port. A working driver writes its status
about once a second; one that starts or restores state writes it before that. Nothing else is
checked: restarting the driver does not help against a broker that is down.
"""

import argparse
import sys
from pathlib import Path

from service.driver import Driver

SILENT_S = 300.0


def main(arguments: list[str] | None = None) -> int:
    """Print the state to standard output, which container engines keep; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m service.probe", description=__doc__)
    parser.add_argument("--status-dir", type=Path, required=True, help="the driver's status folder")
    parser.add_argument(
        "--silent-after", type=float, default=SILENT_S, help="seconds; an older status is dead"
    )
    options = parser.parse_args(arguments)
    view = Driver(options.status_dir, options.silent_after).look()
    if view.status is None or view.problem is not None:
        sys.stdout.write(f"{view.problem}\n")
        return 1
    sys.stdout.write(f"{view.status.state}, status is {view.age_s or 0:.0f} s old\n")
    return 0 if view.status.state in ("starting", "running", "draining") else 1


if __name__ == "__main__":
    sys.exit(main())
