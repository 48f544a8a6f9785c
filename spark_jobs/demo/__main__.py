"""The demo's shop for a broker and a job that already run: produces its events, verifies the rows.

python -m spark_jobs.demo --servers localhost:9092
"""

import argparse
import sys
import time
from pathlib import Path

from spark_jobs.demo.avro_encoding import AvroEncoding
from spark_jobs.demo.json_encoding import JsonEncoding
from spark_jobs.demo.loop import DemoLoop, DemoSetup
from spark_jobs.demo.play import create_topics
from spark_jobs.demo.run import INTERRUPTED, RATE
from spark_jobs.demo.show import Screen
from spark_jobs.embedded.process import stop_signals
from spark_jobs.errors import RejoinError


def main() -> int:
    """Returns exit code 0 if every row was right."""
    options = _options()
    screen = Screen(sys.stdout)
    started = time.monotonic()
    try:
        encoding = JsonEncoding() if options.registry is None else AvroEncoding(options.registry)
        setup = DemoSetup(
            servers=options.servers,
            encoding=encoding,
            rate=options.rate,
            corrupt=options.corrupt,
            status_dir=options.status_dir,
            started=started,
            check=lambda: None,
        )
        with stop_signals() as stop:
            create_topics(options.servers)
            screen.say("the shop's topics exist; its events begin")
            with DemoLoop(setup, screen) as loop:
                loop.play(stop, options.seconds)
                complete = not stop.is_set() and loop.finish(stop)
                if complete:
                    loop.read_rest()
                good = loop.conclude(complete)
    except RejoinError as error:
        screen.say(error.render(), "red")
        return error.exit_code
    if not good:
        return 1
    return 0 if complete or options.seconds is None else INTERRUPTED


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.demo", description=__doc__)
    parser.add_argument("--servers", default="localhost:9092", help="address of the broker")
    parser.add_argument("--registry", help="address of a schema registry; selects Avro")
    parser.add_argument(
        "--seconds", type=float, help="from the first joined row on; else until Ctrl-C"
    )
    parser.add_argument("--rate", type=float, default=RATE, help="orders per second")
    parser.add_argument("--corrupt", action="store_true", help="send broken records too")
    parser.add_argument(
        "--status-dir", type=Path, help="the job's status folder, to show its rates"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
