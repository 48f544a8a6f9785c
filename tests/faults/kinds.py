"""Every kind of fault: how it strikes a run, and what has to follow."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from bench.measure import process_tree
from tests.faults.data import PARTITIONS
from tests.faults.run import Run, Unexpected
from tests.faults.stage import QUERIES

_TMPFS_MB = 48
Strike = Callable[[Run], None]


class Skipped(Exception):
    """This machine does not allow the fault."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`strike` does one round on a running job and leaves it running.

    `prepare` comes before the first start, `clean` after the end. `own_input`: the run reads
    topics of its own, which the strike spoils. Without `compares` the strike itself tells whether
    all is right.
    """

    name: str
    what: str
    strike: Strike
    prepare: Strike = lambda run: None
    clean: Strike = lambda run: None
    own_input: bool = False
    compares: bool = True


def driver_kill(run: Run) -> None:
    run.kill()
    run.start()


def jvm_kill(run: Run) -> None:
    run.kill_jvm()
    run.ends_with("DRIVER_FAILED")
    run.start()


def driver_term(run: Run) -> None:
    run.stop()
    run.start()


def broker_kill(run: Run) -> None:
    run.stage.broker.kill()
    time.sleep(run.draw.uniform(0, 5))
    run.stage.broker.start()


def broker_restart(run: Run) -> None:
    run.stage.broker.stop()
    time.sleep(run.draw.uniform(0, 5))
    run.stage.broker.start()


def network_cut(run: Run) -> None:
    run.stage.proxy.cut()
    time.sleep(run.draw.uniform(1, 10))
    run.stage.proxy.restore()


def network_freeze(run: Run) -> None:
    run.stage.proxy.freeze()
    time.sleep(run.draw.uniform(1, 15))
    run.stage.proxy.restore()


def _signal(pid: int, number: signal.Signals) -> None:
    """A process of a family may have ended since the family was listed."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def zombie(run: Run) -> None:
    """The old driver sleeps, loses its lock, and wakes up beside its successor."""
    old = run.driver
    family = process_tree(old.pid)
    for pid in family:
        _signal(pid, signal.SIGSTOP)
    for query in QUERIES:
        (run.checkpoint / query / "rejoin" / ".lock").unlink()
    before = run.committed(QUERIES[0])
    run.start()
    run.wait(lambda: run.committed(QUERIES[0]) > before, "an epoch of the successor")
    for pid in reversed(family):
        _signal(pid, signal.SIGCONT)
    if not old.wait(run.patience_s):
        raise Unexpected(f"the replaced driver goes on:\n{old.log_tail(12)}")
    if "CHECKPOINT_TAKEN_OVER" not in old.log_tail(12):
        raise Unexpected(f"the replaced driver ended otherwise:\n{old.log_tail(12)}")


def second_driver(run: Run) -> None:
    """It waits for half a minute; the first one may come to its end meanwhile."""
    first = run.driver
    second = run.start()
    if not second.wait(run.patience_s):
        raise Unexpected(f"the second driver goes on:\n{second.log_tail(12)}")
    run.drivers.remove(first)
    run.drivers.append(first)
    if first.exit_code not in (None, 0):
        raise Unexpected(f"the first driver ended too:\n{first.log_tail(12)}")
    if "CHECKPOINT_IN_USE" not in second.log_tail(12) and first.exit_code is None:
        raise Unexpected(f"the second driver ended otherwise:\n{second.log_tail(12)}")


def fenced(run: Run) -> None:
    """Somebody else's producer takes a transactional id once, and goes away."""
    query = run.draw.choice(QUERIES)
    rogue = Producer(
        {
            "bootstrap.servers": run.stage.servers,
            "transactional.id": f"{run.name}-{query}-{run.draw.randrange(PARTITIONS)}",
        }
    )
    rogue.init_transactions(60)


def ledger_lost_idle(run: Run) -> None:
    """The job is stopped in order, and the broker forgets the ledgers meanwhile."""
    run.stop()
    groups = [f"{run.name}-{query}-{n}" for query in QUERIES for n in range(PARTITIONS)]
    for future in run.stage.admin.delete_consumer_groups(groups).values():
        future.result(60)
    run.start()


def ledger_lost(run: Run) -> None:
    """The job is killed inside an epoch, and one ledger is gone: a person has to tell."""
    query = run.draw.choice(QUERIES)
    run.kill()
    while not run.is_inside(query):
        run.start()
        run.wait(partial(_is_beyond, run, query, run.committed(query)), "another epoch")
        time.sleep(run.draw.uniform(0, 1))
        run.kill()
    writer = f"{run.name}-{query}-{run.draw.randrange(PARTITIONS)}"
    truth = "yes" if _ledger(run, query, writer) > run.planned(query) else "no"
    run.stage.admin.delete_consumer_groups([writer])[writer].result(60)
    run.moments[-1] += f" written: {truth}"
    run.start()
    run.ends_with("SINK_LEDGER_MISSING")
    run.start("--epoch-written", f"{query}={truth}")


def _is_beyond(run: Run, query: str, epoch: int) -> bool:
    return run.committed(query) > epoch


def _ledger(run: Run, query: str, writer: str) -> int:
    place = TopicPartition(f"{run.name}_{query}", 0)
    asked = [ConsumerGroupTopicPartitions(writer, [place])]
    answer = run.stage.admin.list_consumer_group_offsets(asked)[writer].result(60)
    return int(answer.topic_partitions[0].offset)


def tmpfs(run: Run) -> None:
    run.checkpoint.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_TMPFS_MB}m", "tmpfs", str(run.checkpoint)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"mount is not allowed: {done.stderr.strip()}")


def unmount(run: Run) -> None:
    subprocess.run(["umount", "-l", str(run.checkpoint)], check=False)  # noqa: S607


def disk_full(run: Run) -> None:
    """Something fills the checkpoint's disk for some seconds."""
    filler = run.checkpoint / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(1 << 16))
    time.sleep(run.draw.uniform(2, 6))
    filler.unlink()


def damaged(run: Run) -> None:
    """A file of the checkpoint is cut off while no driver runs; then it is restored."""
    run.kill()
    files = _damageable(run, run.draw.choice(QUERIES))
    what = run.draw.choice(sorted(files))
    path = files[what]
    run.moments[-1] += f" {what}"
    kept = path.read_bytes()
    path.write_bytes(kept[: len(kept) // 3])
    check = path.with_name(f".{path.name}.crc")
    kept_check = check.read_bytes() if check.exists() else None
    check.unlink(missing_ok=True)
    run.start()
    run.ends_with("CHECKPOINT_DAMAGED", "MANIFEST_UNREADABLE")
    path.write_bytes(kept)
    if kept_check is not None:
        check.write_bytes(kept_check)
    run.start()


def _damageable(run: Run, query: str) -> dict[str, Path]:
    """What a restart reads for certain."""
    root = run.checkpoint / query
    found = {
        "offsets": root / "offsets" / str(run.planned(query)),
        "manifest": root / "rejoin" / "manifest.json",
        "driver": root / "rejoin" / "driver.json",
    }
    if run.committed(query) >= 0:
        found["commits"] = root / "commits" / str(run.committed(query))
    return found


def sink_partitions(run: Run) -> None:
    """Both sink topics grow; so that writers notice, a driver starts anew."""
    for query in QUERIES:
        topic = f"{run.name}_{query}"
        count = len(run.stage.admin.list_topics(topic, timeout=60).topics[topic].partitions)
        made = run.stage.admin.create_partitions([NewPartitions(topic, count + 1)])
        made[topic].result(60)
    run.kill()
    run.start()


def records_deleted(run: Run) -> None:
    """Records that are not read yet are deleted; the declared policy goes on and counts them."""
    run.stop()
    topic = f"{run.inputs}_left"
    _, end = _watermarks(run, topic)
    cut = end - run.draw.randrange(1, max(end // 4, 2))
    for future in run.stage.admin.delete_records([TopicPartition(topic, 0, cut)]).values():
        future.result(60)
    run.start()
    run.ends_with("SOURCE_DATA_LOST")
    if f"to {cut - 1}" not in run.driver.log_tail(12):
        raise Unexpected(f"the lost offsets are not named:\n{run.driver.log_tail(12)}")
    run.settings["rejoin.on-data-loss"] = "continue"
    run.start()
    run.finish()
    if run.lost_records() == 0:
        raise Unexpected("lost records are not counted")


def _watermarks(run: Run, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": run.stage.servers, "group.id": "watermarks"})
    try:
        found = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
        return found[0], found[1]
    finally:
        consumer.close()


def topic_recreated(run: Run) -> None:
    """A source topic is deleted and filled again; a new checkpoint and new sinks start over."""
    run.stop()
    run.stage.delete(f"{run.inputs}_left", f"{run.inputs}_right")
    run.stage.create(f"{run.inputs}_left", f"{run.inputs}_right")
    run.stage.load(run.inputs)
    run.start()
    run.ends_with("TOPIC_RECREATED")
    shutil.rmtree(run.checkpoint)
    sinks = [f"{run.name}_{query}" for query in QUERIES]
    run.stage.delete(*sinks)
    run.stage.create(*sinks)
    run.start()


KINDS: tuple[Kind, ...] = (
    Kind("driver-kill", "kill -9 of the driver", driver_kill),
    Kind("jvm-kill", "kill -9 of the driver's JVM", jvm_kill),
    Kind("driver-term", "SIGTERM to the driver", driver_term),
    Kind("broker-kill", "kill -9 of the broker, which is back after up to 5 s", broker_kill),
    Kind("broker-restart", "the broker restarts in order", broker_restart),
    Kind("network-cut", "all connections drop, none is accepted for up to 10 s", network_cut),
    Kind("network-freeze", "no byte passes for up to 15 s", network_freeze),
    Kind("zombie", "a driver sleeps, loses its lock, wakes up beside its successor", zombie),
    Kind("second-driver", "another driver starts on the same checkpoint", second_driver),
    Kind("fenced", "another producer takes a transactional id", fenced),
    Kind("ledger-lost-idle", "ledgers are deleted between two epochs", ledger_lost_idle),
    Kind("ledger-lost", "a ledger is deleted after a kill inside an epoch", ledger_lost),
    Kind("disk-full", "no room below the checkpoint for some seconds", disk_full, tmpfs, unmount),
    Kind("checkpoint-damaged", "a file of the checkpoint is cut off", damaged),
    Kind("sink-partitions", "both sink topics get a partition more", sink_partitions),
    Kind(
        "records-deleted",
        "records of the source are deleted before they are read",
        records_deleted,
        own_input=True,
        compares=False,
    ),
    Kind(
        "topic-recreated",
        "a source topic is deleted and created again",
        topic_recreated,
        own_input=True,
    ),
)
