"""Faults of a job whose tasks run on a standalone cluster of two workers with a core each."""

import signal
import time
from collections.abc import Callable
from functools import partial

from spark_jobs.embedded.process import Child
from tests.faults.kinds import Kind, driver_kill
from tests.faults.run import Run
from tests.faults.stage import QUERIES
from tests.harness.standalone import Standalone, standalone_cluster

PAUSE_S = 60.0
# an executor that is silent for longer is replaced; Spark's own limit is two minutes
_SHORT = (
    "spark.network.timeout 15s\n"
    "spark.network.timeoutInterval 3s\n"
    "spark.executor.heartbeatInterval 3s\n"
)
_MISSED = "FetchFailed("


def cluster(run: Run, properties: str = "", recovers: bool = False) -> None:
    """The run's tasks go to a cluster of its own, which ends with the run."""
    folder = run.folder / "cluster"
    folder.mkdir()
    made = run.resources.enter_context(standalone_cluster(folder, recovers=recovers))
    with made.properties.open("a", encoding="utf-8") as file:
        file.write(properties)
    run.cluster = made
    # the driver runs no tasks; what executors report is a warning to it
    run.variables = {"REJOIN_MEMORY_MB": "1024", "REJOIN_SPARK_LOG_LEVEL": "WARN"}
    run.options = ["--master", made.url, "--spark-properties", str(made.properties)]


def of_run(run: Run) -> Standalone:
    assert run.cluster is not None
    return run.cluster


def _running(run: Run, worker: Child) -> list[int]:
    """The worker's executors, once an epoch runs and there is one."""
    found: list[int] = []

    def is_inside() -> bool:
        found[:] = of_run(run).executors(worker)
        return bool(found) and any(map(run.is_inside, QUERIES))

    run.wait(is_inside, "an epoch with an executor")
    return found


def executor_kill(run: Run) -> None:
    worker = run.draw.choice(of_run(run).workers)
    of_run(run).signal(signal.SIGKILL, *_running(run, worker))


def worker_pause(run: Run) -> None:
    """Spark's limits are longer than the pause: the job may wait for it or replace it."""
    worker = run.draw.choice(of_run(run).workers)
    paused = [worker.pid, *_running(run, worker)]
    of_run(run).signal(signal.SIGSTOP, *paused)
    time.sleep(PAUSE_S)
    of_run(run).signal(signal.SIGCONT, *paused)


def executor_zombie(run: Run) -> None:
    """An executor sleeps inside an epoch, is replaced, and goes on with its task."""
    worker = run.draw.choice(of_run(run).workers)
    paused = _running(run, worker)
    before = {query: run.planned(query) for query in QUERIES}
    of_run(run).signal(signal.SIGSTOP, worker.pid, *paused)
    inside = [query for query in QUERIES if run.committed(query) < before[query]]
    _wait(run, lambda: _said(run, "heartbeat timed out") > 0, "notice of the sleeper")
    for query in inside:
        _wait(run, partial(_is_beyond, run, query, before[query] + 1), "epochs without it")
    of_run(run).signal(signal.SIGCONT, *paused)
    for query in QUERIES:
        planned = run.planned(query)
        _wait(run, partial(_is_beyond, run, query, planned), "an epoch beside the sleeper")
    of_run(run).signal(signal.SIGCONT, worker.pid)


def _is_beyond(run: Run, query: str, epoch: int) -> bool:
    return run.committed(query) >= epoch


def _wait(run: Run, condition: Callable[[], bool], what: str) -> None:
    """Also content with a job that has come to its end."""
    run.wait(lambda: run.driver.exit_code == 0 or condition(), what)


def orphan_zombie(run: Run) -> None:
    """An executor sleeps, its driver is killed, and it wakes up beside those of the next one."""
    worker = run.draw.choice(of_run(run).workers)
    paused = _running(run, worker)
    of_run(run).signal(signal.SIGSTOP, *paused)
    run.kill()
    run.start()
    before = run.committed(QUERIES[0])
    _wait(run, lambda: run.committed(QUERIES[0]) > before, "an epoch of the successor")
    of_run(run).signal(signal.SIGCONT, *paused)


def shuffle_lost(run: Run) -> None:
    """Files that a stage has left for the next one go until a task has missed them."""
    worker = run.draw.randrange(len(of_run(run).workers))
    before = _said(run, _MISSED)

    def is_missed() -> bool:
        for path in of_run(run).local_files(worker, "shuffle_*"):
            path.unlink(missing_ok=True)
        return _said(run, _MISSED) > before

    _wait(run, is_missed, "a task that misses its input")


def _said(run: Run, text: str) -> int:
    """How often Spark's log has it."""
    log = run.status / "driver.log"
    return log.read_text(encoding="utf-8", errors="replace").count(text)


def master_restart(run: Run) -> None:
    """The next master reads from the first one's files which workers and jobs there are."""
    of_run(run).master.kill()
    time.sleep(run.draw.uniform(0, 5))
    of_run(run).start_master()


def forgetful_master(run: Run) -> None:
    """The next master knows nothing of the job, and has the workers end its executors."""
    master_restart(run)
    run.wait(lambda: run.driver.exit_code is not None, "the end of the driver")
    if run.driver.exit_code != 0:
        run.ends_with("EXECUTORS_GONE")
        run.start()


CLUSTER_KINDS: tuple[Kind, ...] = (
    Kind("cluster-executor-kill", "kill -9 of an executor inside an epoch", executor_kill, cluster),
    Kind(
        "cluster-worker-pause",
        "a worker and its executor sleep for a minute",
        worker_pause,
        cluster,
    ),
    Kind(
        "cluster-executor-zombie",
        "an executor sleeps, is replaced, and goes on with its task",
        executor_zombie,
        partial(cluster, properties=_SHORT),
    ),
    Kind("cluster-driver-kill", "kill -9 of the driver beside its executors", driver_kill, cluster),
    Kind(
        "cluster-orphan-zombie",
        "an executor wakes up after its driver was killed and replaced",
        orphan_zombie,
        cluster,
    ),
    Kind(
        "cluster-shuffle-lost",
        "files between two stages are deleted on a worker",
        shuffle_lost,
        cluster,
    ),
    Kind(
        "cluster-master-restart",
        "kill -9 of a master that keeps its knowledge in files",
        master_restart,
        partial(cluster, recovers=True),
    ),
    Kind(
        "cluster-master-forgets",
        "kill -9 of a master that knows nothing afterwards",
        forgetful_master,
        cluster,
    ),
)
