"""`python -m bench.latency`: how long a record takes to its result, Kafka to Kafka.

Engines run one after the other. A producer stamps the records of one table. A consumer of committed
records compares the stamp in each result with its own clock.
"""

import argparse
import json
import math
import sys

from bench.job_settings import setting
from bench.latency.engines import engines
from bench.latency.run import Load, measure
from bench.latency.workloads import WORKLOADS


def main() -> None:
    """Print a line of JSON per engine and part of the time."""
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="regular")
    parser.add_argument(
        "--engines", default="rejoin,flink", help=f"with commas, of {', '.join(engines({}, {}))}"
    )
    parser.add_argument("--rate", type=int, default=1000, help="stamped records a second")
    parser.add_argument("--seconds", type=seconds, default=60.0, help="length of a measurement")
    parser.add_argument("--warmup", type=float, default=120.0, help="seconds before it")
    parser.add_argument(
        "--every", type=seconds, help="describe each part of so many seconds as well"
    )
    for name, whose in (("--set", "rejoin's"), ("--flink-set", "Flink's")):
        parser.add_argument(
            name, type=setting, action="append", default=[], help=f"{whose} setting, name=value"
        )
    given = parser.parse_args()
    known = engines(dict(given.set), dict(given.flink_set))
    names = given.engines.split(",")
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no such engine: {', '.join(unknown)}; known are {', '.join(known)}")
    workload = WORKLOADS[given.workload]
    load = Load(given.rate, given.warmup, given.seconds, given.every)
    for name in names:
        known[name].prepare()
        for line in measure(known[name], workload, load):
            what = {"workload": given.workload, "engine": name, "rate": given.rate}
            sys.stdout.write(json.dumps({**what, **line}) + "\n")
            sys.stdout.flush()


def seconds(text: str) -> float:
    """A length of time, as argparse takes it; raises ArgumentTypeError."""
    if 0 < (value := float(text)) < math.inf:
        return value
    raise argparse.ArgumentTypeError(f"has to be above 0: {text}")


if __name__ == "__main__":
    main()
