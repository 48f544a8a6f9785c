"""Jobs whose checkpoint is on S3: a server in a process of its own, and drivers that are killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.embedded.broker import Broker
from tests.harness.s3 import KEY, SECRET, S3Server, s3_server
from tests.harness.shop import Shop, orders, paid, payments, payments_job, wait_until, written


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def shop(broker: Broker, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(broker, tmp_path)
    made.create("orders", "payments", "paid_sink")
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


@pytest.mark.timeout(900)  # three drivers start, and one watches for 20 s
def test_driver_killed_inside_an_epoch_is_resumed_and_keeps_others_out(
    shop: Shop, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    shop.send("orders", orders(0, 300))
    shop.send("payments", payments(0, 300))
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
