"""`python -m bench.delivery`: measures the cost of exactly-once over at-least-once delivery.

The same job runs over the same topics with both guarantees in turns, so that other load on the
machine affects both alike. The rows of every run are verified. Run it by hand on an idle machine.
"""

import argparse
import shutil
import sys
from statistics import median

from bench.engines import Folders, Rejoin
from bench.jobs import JOBS, BenchJob, Guarantee, render
from bench.load import BenchData, create_topics, load
from bench.measure import SinkProgress, run_measured
from bench.results import in_micros, verified
from bench.run import WORK
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer

_GUARANTEES: tuple[Guarantee, ...] = ("at-least-once", "exactly-once")


def main() -> None:
    options = _options()
    job = JOBS[options.job]
    data: BenchData = job.data(options.rows, options.keys or min(job.default_keys, options.rows))
    Rejoin({}).prepare()
    work = WORK / f"delivery-{job.name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    seconds: dict[Guarantee, list[float]] = {guarantee: [] for guarantee in _GUARANTEES}
    with Broker(work / "kafka", heap="1g") as broker, RegistryServer(work / "schemas") as registry:
        kafka = (broker.bootstrap_servers, registry.url)
        load(data, *kafka)
        for turn in range(options.turns):
            for guarantee in _GUARANTEES if turn % 2 == 0 else reversed(_GUARANTEES):
                folders = Folders(work / f"result_{guarantee}_{turn}")
                took = _run(job, data, kafka, guarantee, folders, options.timeout)
                seconds[guarantee].append(took)
                _say(f"turn {turn + 1} {guarantee}: {took:.1f} s")
    shutil.rmtree(work, ignore_errors=True)
    _report(job.name, options.rows, seconds)


def _run(
    job: BenchJob,
    data: BenchData,
    kafka: tuple[str, str],
    guarantee: Guarantee,
    folders: Folders,
    timeout_s: float,
) -> float:
    """Run and verify; returns the seconds from the start of the process to its end."""
    topic = folders.root.name
    engine = Rejoin({})
    folders.root.mkdir()
    create_topics(kafka[0], [topic])
    text = render(job, engine.settings(folders), topic, *kafka, guarantee)
    folders.job.write_text(text, encoding="utf-8")
    progress = SinkProgress(kafka[0], topic)
    try:
        command = engine.command(folders)
        measured = run_measured(command, folders.log, folders.state, progress, timeout_s)
    finally:
        progress.close()
    verified(job, in_micros(data.expected(), job.sink_columns), *kafka, topic)
    shutil.rmtree(folders.root, ignore_errors=True)
    return measured.seconds


def _report(job: str, rows: int, seconds: dict[Guarantee, list[float]]) -> None:
    once, least = seconds["exactly-once"], seconds["at-least-once"]
    pairs = [a / b for a, b in zip(once, least, strict=True)]
    ratio = median(once) / median(least)
    _say(f"{job}, {rows:,} records, {len(once)} turns")
    _say(f"at-least-once  median {median(least):.1f} s")
    _say(f"exactly-once   median {median(once):.1f} s")
    _say(f"ratio of medians {ratio:.3f}, median of pairs {median(pairs):.3f}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.delivery", description=__doc__)
    parser.add_argument("--job", choices=sorted(JOBS), default="regular")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--turns", type=int, default=5, help="runs per guarantee")
    parser.add_argument("--timeout", type=float, default=900.0, help="most seconds for one run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
