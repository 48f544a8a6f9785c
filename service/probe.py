"""`python -m service.probe --status-dir DIR`: exit code 0 while the driver is alive.

For a container's health check, which has no port to ask: a driver that works writes its status
about once a second, one that starts or restores state does so before it begins. A dead broker is
no reason to restart it, so nothing else counts.
"""

import argparse
import sys
from pathlib import Path

from service.driver import Driver

SILENT_S = 300.0


def main(arguments: list[str] | None = None) -> int:
    """The words go to standard output, where container engines keep them."""
    parser = argparse.ArgumentParser(prog="python -m service.probe", description=__doc__)
    parser.add_argument("--status-dir", type=Path, required=True, help="where the driver writes")
    parser.add_argument(
        "--silent-after", type=float, default=SILENT_S, help="seconds; a status that old is dead"
    )
    options = parser.parse_args(arguments)
    view = Driver(options.status_dir, options.silent_after).look()
    if view.status is None or view.problem is not None:
        sys.stdout.write(f"{view.problem}: {view.detail}\n")
        return 1
    sys.stdout.write(f"{view.status.state}, told {view.age_s or 0:.0f} s ago\n")
    return 0 if view.status.state in ("starting", "running", "draining") else 1


if __name__ == "__main__":
    sys.exit(main())
