"""`python -m tests.debezium`: counts per file of the recorded run; fails if any is unexplained."""

import sys

from tests.debezium.recording import FORMATS
from tests.debezium.registry import recorded_registry
from tests.debezium.summary import HEADING, summary
from tests.harness.gateway import kernel


def main() -> int:
    sys.stdout.write(HEADING + "\n")
    unexplained: list[str] = []
    with recorded_registry() as registry:
        for count in summary(kernel(), registry, sys.argv[1:] or FORMATS):
            sys.stdout.write(count.line() + "\n")
            unexplained += count.unexplained
    sys.stdout.write("".join(f"  {text}\n" for text in unexplained[:20]))
    sys.stdout.write(f"unexplained: {len(unexplained)}\n")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
