"""Jobs whose checkpoint is on S3: a server in a process of its own, and drivers that are killed."""

import json
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import LOOPBACK
from spark_jobs.kernel.calls import Kernel
from spark_jobs.kernel.standalone import local_kernel
from spark_jobs.streaming.failure import JavaError
from spark_jobs.streaming.object_store import jars_for, settings_for
from tests.harness.s3 import KEY, SECRET, S3Server, s3_server
from tests.harness.shop import Shop, orders, paid, payments, payments_job, wait_until, written
from tests.harness.slow_s3 import SlowS3, slow_s3
from tests.harness.standalone import standalone_cluster


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture
def shop(broker: Broker, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(broker, tmp_path)
    made.create("orders", "payments", "paid_sink")
    made.send("orders", orders(0, 300))
    made.send("payments", payments(0, 300))
    yield made
    for child in made.running:
        child.stop(0.0)


def on_s3(shop: Shop, s3: S3Server, **properties: str) -> list[str]:
    """The options of `rejoin run`."""
    file = shop.folder / "spark.properties"
    given = {**s3.properties(), **properties}
    file.write_text("".join(f"{name} {value}\n" for name, value in given.items()))
    checkpoint = f"s3a://{s3.bucket}/{shop.prefix}"
    return ["--no-sidecar", "--spark-properties", str(file), "--checkpoint", checkpoint]


def is_inside_an_epoch(shop: Shop, s3: S3Server) -> bool:
    root = f"{shop.prefix}/paid_sink"
    planned, committed = s3.numbers(f"{root}/offsets"), s3.numbers(f"{root}/commits")
    return max(planned) > max(committed)


def ask(*arguments: str) -> str:
    """What a command of `rejoin` prints."""
    command = [sys.executable, "-m", "spark_jobs.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("credentials")
@pytest.mark.timeout(900)  # three drivers start, and one watches for 20 s
def test_driver_killed_inside_an_epoch_is_resumed_and_keeps_others_out(
    shop: Shop, s3: S3Server
) -> None:
    job = payments_job(shop, bounded=False)
    options = on_s3(shop, s3)
    first = shop.start(job, *options)
    wait_until(lambda: written(shop) >= 300, first)
    shop.send("orders", orders(300, 600))
    shop.send("payments", payments(300, 600))
    wait_until(lambda: is_inside_an_epoch(shop, s3), first)
    first.kill()
    second = shop.start(job, *options)
    assert shop.rows("paid_sink", 600) == paid(0, 600), second.log_tail(40)
    third = shop.start(job, *options, "--status-dir", str(shop.folder / "third"))
    assert third.wait(shop.within_s), third.log_tail(40)
    assert "CHECKPOINT_IN_USE" in third.log_tail(40)
    second.stop(60.0)
    assert second.exit_code == 0, second.log_tail(40)


@pytest.mark.timeout(900)
def test_a_store_that_is_slow_and_refuses_requests(
    shop: Shop, s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The credentials are those of a role, got for the token of a web identity."""
    token = tmp_path / "token"
    token.write_text("a-token-of-the-cluster")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/orders")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", s3.url)
    slow = SlowS3(s3.port, refused=0.1, listing_s=0.3)
    with slow_s3(slow) as address:
        options = on_s3(shop, s3, **s3.properties(address))
        shop.run("SET 'restart-strategy.type' = 'none';\n" + payments_job(shop, True), *options)
    assert shop.rows("paid_sink", 300) == paid(0, 300)
    assert slow.refusals > 10
    assert slow.listings > 10
    assert len(slow.signed_by) == 1
    assert slow.signed_by.keys() != {KEY}


@pytest.mark.timeout(900)  # two drivers, and four commands
def test_state_on_s3_is_shown_rescaled_and_copied(
    shop: Shop, s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The credentials are in a file."""
    file = tmp_path / "credentials"
    file.write_text(f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    job = payments_job(shop, bounded=False)
    options = on_s3(shop, s3)
    first = shop.start(job, *options)
    wait_until(lambda: written(shop) >= 300, first)
    first.stop(60.0)
    assert first.exit_code == 0, first.log_tail(40)
    sql, properties, checkpoint = str(shop.folder / "job.sql"), options[1:3], options[-1]
    before = state_rows(sql, checkpoint, *properties)
    assert before == {"left": 300, "right": 300}
    ask("rescale", sql, "--parallelism", "3", "--checkpoint", checkpoint, *properties)
    disk, back = str(tmp_path / "disk"), f"{checkpoint}-copy"
    ask("checkpoint", "copy", checkpoint, disk, *properties)
    ask("checkpoint", "copy", disk, back, *properties)
    (shop.folder / "job.sql").write_text(job)
    assert state_rows(sql, back, *properties) == before
    judged = ask("check", sql, "--checkpoint", back, *properties)
    assert "identical to the checkpoint's" in judged
    shop.send("orders", orders(300, 600))
    shop.send("payments", payments(300, 600))
    second = shop.start("SET 'rejoin.parallelism' = '3';\n" + job, *options[:-1], back)
    assert shop.rows("paid_sink", 600) == paid(0, 600), second.log_tail(40)
    second.stop(60.0)
    assert second.exit_code == 0, second.log_tail(40)


def state_rows(sql: str, checkpoint: str, *options: str) -> dict[str, int]:
    """Rows of the join by side."""
    printed = ask("state", "ls", sql, "--checkpoint", checkpoint, "--json", *options)
    return dict(json.loads(printed)["rows"])


@pytest.mark.usefixtures("credentials")
@pytest.mark.timeout(900)
def test_of_two_drivers_that_start_at_once_one_goes_on(shop: Shop, s3: S3Server) -> None:
    job = payments_job(shop, bounded=False)
    options = on_s3(shop, s3)
    both = [
        shop.start(job, *options, "--status-dir", str(shop.folder / f"status{n}")) for n in (1, 2)
    ]
    assert shop.rows("paid_sink", 300) == paid(0, 300)
    deadline = time.monotonic() + 120
    while all(child.exit_code is None for child in both):
        assert time.monotonic() < deadline, "both go on"
        time.sleep(0.2)
    shop.send("orders", orders(300, 600))
    shop.send("payments", payments(300, 600))
    assert shop.rows("paid_sink", 600) == paid(0, 600)
    (over,) = (child for child in both if child.exit_code is not None)
    (alive,) = (child for child in both if child is not over)
    assert over.exit_code == 2, over.log_tail(40)
    assert re.search("CHECKPOINT_IN_USE|CHECKPOINT_TAKEN_OVER|SINK_FENCED", over.log_tail(40))
    alive.stop(60.0)
    assert alive.exit_code == 0, alive.log_tail(40)


@pytest.mark.usefixtures("credentials")
def test_a_bucket_that_is_not_there_is_told(shop: Shop, s3: S3Server) -> None:
    *options, _ = on_s3(shop, s3)
    child = shop.start(payments_job(shop, bounded=False), *options, "s3a://nowhere/job")
    assert child.wait(shop.within_s), child.log_tail(40)
    assert child.exit_code == 2, child.log_tail(40)
    told = r"CHECKPOINT_UNREADABLE s3a://nowhere/job cannot be read: .*nowhere"
    assert re.search(told, child.log_tail(40)), child.log_tail(40)


@pytest.mark.timeout(900)
def test_state_of_executors_survives_them_there(
    shop: Shop, s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark's properties bring the credentials to them, from the environment of the driver."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with standalone_cluster(folder) as cluster:
        monkeypatch.setenv("STORE_KEY", KEY)
        monkeypatch.setenv("STORE_SECRET", SECRET)
        signed = {
            "spark.hadoop.fs.s3a.access.key": "${env:STORE_KEY}",
            "spark.hadoop.fs.s3a.secret.key": "${env:STORE_SECRET}",
        }
        address = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        options = on_s3(shop, s3, **signed, **address)
        child = shop.start(payments_job(shop, bounded=False), *options, "--master", cluster.url)
        wait_until(lambda: written(shop) >= 300, child)
        shop.send("orders", orders(300, 600))
        shop.send("payments", payments(300, 600))
        wait_until(lambda: is_inside_an_epoch(shop, s3), child)
        killed = cluster.executors(cluster.workers[0])
        cluster.signal(signal.SIGKILL, *killed)
        assert shop.rows("paid_sink", 600) == paid(0, 600), child.log_tail(40)
        wait_until(lambda: len(cluster.executors()) == 2, child)
        assert not set(killed) & set(cluster.executors())
        shop.send("orders", orders(600, 900))
        shop.send("payments", payments(600, 900))
        assert shop.rows("paid_sink", 900) == paid(0, 900), child.log_tail(40)
        child.stop(60.0)
        assert child.exit_code == 0, child.log_tail(40)
        assert shop.status().queries[0].restarts_total == 0, child.log_tail(40)


def kernel_of(s3: S3Server, target: str) -> AbstractContextManager[Kernel]:
    signed = {
        "spark.hadoop.fs.s3a.access.key": KEY,
        "spark.hadoop.fs.s3a.secret.key": SECRET,
    }
    properties = {**settings_for(target), **s3.properties(), **signed}
    return local_kernel(*jars_for(target), properties=properties)


def test_an_object_that_has_to_be_new_replaces_none(s3: S3Server, tmp_path: Path) -> None:
    """Copying an operator's metadata writes it as Spark's logs are written."""
    file = tmp_path / "orders" / "state" / "0" / "_metadata" / "metadata"
    file.parent.mkdir(parents=True)
    target = f"s3a://{s3.bucket}/{uuid.uuid4().hex}"
    with kernel_of(s3, target) as kernel:
        copying = kernel.checkpoint_copy(str(tmp_path), target)
        written = kernel.stored_files(f"{target}/orders")
        name = str(file.relative_to(tmp_path))
        file.write_text("one driver's")
        copying.copy(name)
        copying.copy(name)  # as S3A does it when the answer to the first request is lost
        file.write_text("another driver's")
        with pytest.raises(JavaError, match="exists already: another driver wrote it"):
            copying.copy(name)
        assert written.read("state/0/_metadata/metadata") == "one driver's"


def test_a_file_that_is_replaced_while_it_is_read(s3: S3Server) -> None:
    """As the record of the checkpoint's owner is, by each of that driver's beats."""
    target = f"s3a://{s3.bucket}/{uuid.uuid4().hex}"
    texts = ["x" * length for length in range(1, 200)]
    with kernel_of(s3, target) as kernel:
        written, read = kernel.stored_files(target), kernel.stored_files(target)
        written.write("owner", texts[0])
        with ThreadPoolExecutor(1) as writer:
            writing = writer.submit(lambda: [written.write("owner", text) for text in texts])
            found = [read.read("owner")]
            while not writing.done():
                found.append(read.read("owner"))
            writing.result()
    assert len(set(found)) > 10
    assert set(found) <= set(texts)
