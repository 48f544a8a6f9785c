"""`python -m bench.executors`: measures what it costs to run a job's tasks on executors.

The same job runs over the same topics in threads of the driver (`local[2]`) and on two executors of
one core (`local-cluster[2,1,MB]`), in turns, so that other load on the machine affects both alike.
The rows of every run are verified. Run it by hand on an idle machine.
"""

from pathlib import Path
from statistics import median

from bench.measure import Measurement
from bench.peers.peer import PARALLELISM
from bench.peers.rejoin import Rejoin, spark_properties
from bench.turns import Turns, parser_of_turns, say, turns, use_cores, workload_of

_DRIVER_MB = 1024  # of a driver that runs no tasks
_THREADS, _EXECUTORS = "local[2]", "2 executors"


def main() -> None:
    parser = parser_of_turns("bench.executors", __doc__, rows=4_000_000, turns=3)
    parser.add_argument("--memory-mb", type=int, default=2048, help="heap for tasks in sum")
    options = parser.parse_args()
    workload, data = workload_of(options)
    Rejoin({}).prepare()
    use_cores(PARALLELISM)
    found: dict[str, list[Measurement]] = {_THREADS: [], _EXECUTORS: []}
    with turns("executors", workload, data, options.timeout) as made:
        engines = _engines(made.work, options.memory_mb)
        for turn in range(options.turns):
            for name in found if turn % 2 == 0 else reversed(found):
                found[name].append(_run(made, engines[name], name, turn, options.rows))
    _report(workload.name, options.rows, found)


def _engines(work: Path, memory_mb: int) -> dict[str, Rejoin]:
    """The heap of both executors together is that of the threads."""
    heap_mb = memory_mb // 2
    properties = spark_properties(work, {"spark.executor.memory": f"{heap_mb}m"})
    cluster = ("--master", f"local-cluster[2,1,{2 * heap_mb}]", *properties)
    return {
        _THREADS: Rejoin({}, ("--master", _THREADS), memory_mb),
        _EXECUTORS: Rejoin({}, cluster, _DRIVER_MB),
    }


def _run(made: Turns, engine: Rejoin, name: str, turn: int, rows: int) -> Measurement:
    topic = f"result_{'threads' if name == _THREADS else 'executors'}_{turn}"
    measured, result = made.run(engine, topic)
    warm = rows * measured.warm_share_per_s
    say(
        f"turn {turn + 1}  {name:11}  {measured.seconds:6.1f} s, warm {warm:,.0f} rows/s, "
        f"processors {measured.processor_s:.1f} s, "
        f"{measured.peak_rss_bytes / 2**20:,.0f} MiB; {len(result.rows):,} rows, each as expected"
    )
    return measured


def _report(job: str, rows: int, found: dict[str, list[Measurement]]) -> None:
    threads, executors = found[_THREADS], found[_EXECUTORS]
    whole = [e.seconds / t.seconds for t, e in zip(threads, executors, strict=True)]
    warm = [
        t.warm_share_per_s / e.warm_share_per_s
        for t, e in zip(threads, executors, strict=True)
        if e.warm_share_per_s
    ]
    computed = [e.processor_s / t.processor_s for t, e in zip(threads, executors, strict=True)]
    say(f"{job}, {rows:,} records, {len(threads)} turns; executors' time / threads' time:")
    say(f"processor time of the whole run: median of pairs {median(computed):.3f}")
    say(f"whole run, start-up included: median of pairs {median(whole):.3f}")
    if warm:
        say(f"warm, from 25 % to 90 % of the output: median of pairs {median(warm):.3f}")


if __name__ == "__main__":
    main()
