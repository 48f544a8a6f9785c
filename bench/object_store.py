"""`python -m bench.object_store`: measures what an epoch costs with the checkpoint on S3.

The same job runs over the same topics with its checkpoint on this machine's disk and on an S3
server in a process of its own (moto), in turns, so that other load on the machine affects both
alike. The rows of every run are verified. Times of epochs are Spark's own, from its event log;
requests are counted in the server's log. Run it by hand on an idle machine.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean, median

from bench.measure import BenchError
from bench.peers.rejoin import Rejoin, event_log, spark_properties
from bench.turns import Turns, parser_of_turns, say, turns, workload_of
from tests.harness.s3 import KEY, SECRET, s3_server

_DISK, _S3 = "disk", "s3"
_PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
_REQUEST = re.compile(r'\[(\d+/\w+/\d+ \d+:\d+:\d+)\] "([A-Z]+) (\S+) HTTP/')
_COLD = 2  # epochs at the start of a run that do not count
_PARTS = ("triggerExecution", "addBatch", "walCommit", "commitOffsets")
# Amazon's list prices of S3 Standard, us-east-1, in dollars; deletions are free
_DOLLARS = {"PUT": 5e-6, "POST": 5e-6, "LIST": 5e-6, "GET": 4e-7, "HEAD": 4e-7, "DELETE": 0.0}
_MONTH_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch that read records: when it began, and milliseconds by Spark's name of the part."""

    began: datetime
    parts_ms: Mapping[str, int]

    @property
    def ended_s(self) -> float:
        return self.began.timestamp() + self.parts_ms["triggerExecution"] / 1e3


@dataclass(frozen=True, slots=True)
class Run:
    """The epochs of a run, but for the cold ones; requests per epoch by method, if it was on S3."""

    epochs: Sequence[Epoch]
    requests: Mapping[str, float]

    def median_ms(self, part: str) -> float:
        return median(epoch.parts_ms.get(part, 0) for epoch in self.epochs)


def epochs_of(events: Path) -> list[Epoch]:
    """What Spark's event log tells of the epochs that are not cold.

    Raises:
        BenchError: there are none.
    """
    found = []
    for path in sorted(p for p in events.rglob("*") if p.is_file() and p.name[0] != "."):
        for line in path.read_text(encoding="utf-8").splitlines():
            if _PROGRESS in line:
                progress = json.loads(line)["progress"]
                if sum(source["numInputRows"] for source in progress["sources"]):
                    began = datetime.fromisoformat(progress["timestamp"])
                    found.append(Epoch(began, progress["durationMs"]))
    if len(found) <= _COLD:
        raise BenchError("BENCH_FEW_EPOCHS", f"{len(found)} epochs: too few", hint="more --rows")
    return sorted(found, key=lambda epoch: epoch.began)[_COLD:]


def requests_per_epoch(log: str, epochs: Sequence[Epoch]) -> dict[str, float]:
    """Requests in the server's log by method; a GET that lists a folder counts as LIST."""
    first, last = epochs[0].began.timestamp(), epochs[-1].ended_s
    counts: Counter[str] = Counter()
    for at, method, path in _REQUEST.findall(log):
        if first <= datetime.strptime(at, "%d/%b/%Y %H:%M:%S").astimezone().timestamp() < last:
            counts["LIST" if method == "GET" and "list-type=" in path else method] += 1
    return {method: count / len(epochs) for method, count in counts.most_common()}


def dollars_a_month(requests: Mapping[str, float], every_s: float) -> float:
    """List price of the requests of an epoch that is run every so many seconds.

    >>> round(dollars_a_month({"PUT": 10, "GET": 5}, 1.0), 2)
    134.78
    """
    return sum(_DOLLARS[method] * n for method, n in requests.items()) * _MONTH_S / every_s


def main() -> None:
    parser = parser_of_turns("bench.object_store", __doc__, rows=1_000_000, turns=3)
    options = parser.parse_args()
    workload, data = workload_of(options)
    Rejoin({}).prepare()
    found: dict[str, list[Run]] = {_DISK: [], _S3: []}
    with turns("object-store", workload, data, options.timeout) as made:
        for turn in range(options.turns):
            for place in found if turn % 2 == 0 else reversed(found):
                found[place].append(_run(made, place, f"result_{place}_{turn}"))
    say(f"{workload.name}, {options.rows:,} records, {options.turns} turns; medians of epochs:")
    for part in _PARTS:
        disk, s3 = (median(run.median_ms(part) for run in found[place]) for place in found)
        say(f"{part:16} disk {disk:6.0f} ms, s3 {s3:6.0f} ms")
    requests = {m: mean(run.requests.get(m, 0.0) for run in found[_S3]) for m in _DOLLARS}
    say("requests per epoch: " + ", ".join(f"{n:.1f} {m}" for m, n in requests.items() if n))
    for every_s in (1.0, 10.0, 60.0):
        say(f"an epoch every {every_s:.0f} s: {dollars_a_month(requests, every_s):,.2f} $ a month")


def _run(made: Turns, place: str, name: str) -> Run:
    folder = made.work / f"{name}.spark"
    properties = event_log(folder / "events")
    own: list[str] = []
    log = ""
    with ExitStack() as stack:
        if place == _S3:
            server = stack.enter_context(s3_server(folder))
            properties |= server.properties() | _credentials(folder)
            own += ["--checkpoint", f"s3a://{server.bucket}/job"]
        own += spark_properties(folder, properties)
        settings = {"rejoin.max-offsets-per-trigger": "50000"}
        measured, result = made.run(Rejoin(settings, own), name)
        if place == _S3:
            log = server.child.log_path.read_text(encoding="utf-8")
    epochs = epochs_of(folder / "events")
    run = Run(epochs, requests_per_epoch(log, epochs))
    say(
        f"{name}: {measured.seconds:.1f} s, {len(epochs)} warm epochs of "
        f"{run.median_ms('triggerExecution'):.0f} ms; {len(result.rows):,} rows, each as expected"
    )
    return run


def _credentials(folder: Path) -> dict[str, str]:
    """Spark's properties, which refer to files."""
    found = {}
    for name, value in (("access.key", KEY), ("secret.key", SECRET)):
        (folder / name).write_text(value, encoding="utf-8")
        found[f"spark.hadoop.fs.s3a.{name}"] = f"${{file:{folder / name}}}"
    return found


if __name__ == "__main__":
    main()
