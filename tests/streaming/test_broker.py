"""The embedded broker: real Kafka, data that survives restarts, and no process left behind."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from spark_jobs.embedded import broker as broker_module
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import free_ports, port_answers
from spark_jobs.errors import ConfigError, KafkaError

ROOT = Path(__file__).parents[2]


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until_gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and is_running(pid):
        time.sleep(0.05)
    return not is_running(pid)


def check_for(broker: Broker, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        broker.check_alive()
        time.sleep(0.05)


def create_topic(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})  # its futures die with it
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)


def consume(servers: str, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": str(uuid.uuid4()),
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    try:
        messages = consumer.consume(count, timeout=30)
        return [(m.key(), m.value()) for m in messages if m.error() is None]
    finally:
        consumer.close()


def produce_committed_and_aborted(servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"writer-{topic}"})
    producer.init_transactions(30)
    for value, commit in ((b"aborted", False), (b"committed", True)):
        producer.begin_transaction()
        producer.produce(topic, key=b"k", value=value)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)


def test_transactions_are_real(broker: Broker) -> None:
    topic = f"transactions-{uuid.uuid4()}"
    create_topic(broker.bootstrap_servers, topic)
    produce_committed_and_aborted(broker.bootstrap_servers, topic)
    assert consume(broker.bootstrap_servers, topic, 1) == [(b"k", b"committed")]


def test_records_of_long_ago_are_kept_and_topics_are_not_made_by_accident(broker: Broker) -> None:
    settings = (broker.data_dir / "server.properties").read_text()
    assert "log.retention.ms=-1" in settings
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.list_topics(topic="never-created", timeout=10)
    assert "never-created" not in admin.list_topics(timeout=10).topics


def test_restart_keeps_port_and_data(tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker:
        servers = broker.bootstrap_servers
        create_topic(servers, "kept")
        producer = Producer({"bootstrap.servers": servers})
        producer.produce("kept", key=b"k", value=None)
        assert producer.flush(30) == 0
        broker.stop()
        assert not port_answers(broker.port)
        broker.start()
        assert broker.bootstrap_servers == servers
        assert consume(servers, "kept", 1) == [(b"k", None)]
        pid = broker.pid
    assert pid is not None
    assert not is_running(pid)


def test_failure_inside_the_block_stops_the_broker(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    pids: list[int | None] = []

    def fail_inside() -> None:
        with broker:
            pids.append(broker.pid)
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail_inside()
    assert pids[0] is not None
    assert not is_running(pids[0])


def test_second_broker_on_the_folder_or_port_is_refused(broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="another broker uses"):
        Broker(broker.data_dir).start()
    with pytest.raises(KafkaError, match=f"port {broker.port} .*is in use"):
        Broker(tmp_path, broker.port).start()


def test_death_of_the_broker_is_told_with_its_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file where the broker wants a folder")
    with pytest.raises(KafkaError) as told:
        Broker(tmp_path).start()
    assert told.value.code == "BROKER_FORMAT_FAILED"
    assert str(tmp_path / "log") in str(told.value)

    with Broker(tmp_path / "healthy") as broker:
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGKILL)
        with pytest.raises(KafkaError, match="exit code -9"):
            check_for(broker, seconds=10)


def test_missing_jars_name_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "BROKER_JARS", tmp_path)
    with pytest.raises(ConfigError) as told:
        Broker(tmp_path / "data").start()
    assert told.value.hint == "run `make setup`"


FOREGROUND = """
from pathlib import Path
from spark_jobs.embedded.broker import run_broker
run_broker({port}, Path({folder!r}))
"""


def start_foreground(folder: Path, port: int) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", FOREGROUND.format(port=port, folder=str(folder))],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(f"Kafka is ready at 127.0.0.1:{port} ")
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_foreground_command_ends_within_seconds(tmp_path: Path, number: signal.Signals) -> None:
    (port,) = free_ports(1)
    process = start_foreground(tmp_path, port)
    process.send_signal(number)
    output, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    assert output == "stopping Kafka\n"
    assert not port_answers(port)


def test_broker_dies_with_its_parent(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    process = start_foreground(tmp_path, port)
    children = Path(f"/proc/{process.pid}/task").glob("*/children")
    (java,) = [int(pid) for path in children for pid in path.read_text().split()]
    process.kill()
    process.communicate()
    assert wait_until_gone(java, 10)
