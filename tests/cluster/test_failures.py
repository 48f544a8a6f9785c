"""An executor that is killed in the middle of a run: nothing is lost, nothing comes twice."""

import os
import signal

import pytest

from tests.harness.shop import Shop, orders, paid, payments, payments_job
from tests.harness.standalone import Standalone

STEP = 400
STEPS = 5
SMALL_EPOCHS = (
    "SET 'rejoin.max-offsets-per-trigger' = '100';\nSET 'rejoin.trigger-interval' = '0 ms';\n"
)


def await_rows(shop: Shop, count: int) -> None:
    """By what is in the topic: an executor that is killed takes its newest counts with it."""
    found = shop.messages("paid_sink", lambda messages: len(messages) >= count, quiet_s=0.0)
    assert len(found) >= count, shop.running[0].log_tail(40)


@pytest.mark.timeout(1800)
def test_killed_executors_lose_and_repeat_nothing(shop: Shop, standalone: Standalone) -> None:
    """One after the other is killed while epochs run; the driver goes on with new ones."""
    shop.create("orders", "payments", "paid_sink")
    child = shop.start(
        SMALL_EPOCHS + payments_job(shop, bounded=False),
        "--no-sidecar",
        *("--master", standalone.url, "--spark-properties", str(standalone.properties)),
    )
    others = set(standalone.outputs())
    before: set[int] = set()
    for step in range(STEPS):
        shop.send("orders", orders(step * STEP, (step + 1) * STEP))
        shop.send("payments", payments(step * STEP, (step + 1) * STEP))
        # a part of this step's rows is out, the rest on its way
        await_rows(shop, paid(0, step * STEP).total() + 50)
        running = standalone.executors()
        assert running, child.log_tail(40)
        if step < STEPS - 1:
            os.kill(running[step % len(running)], signal.SIGKILL)
            before.update(running)
    everything = paid(0, STEPS * STEP)
    await_rows(shop, everything.total())
    assert set(standalone.executors()) - before, "no executor is new"
    assert shop.rows("paid_sink", everything.total()) == everything
    child.stop(30.0)
    assert child.exit_code == 0, child.log_tail(40)
    assert shop.status().queries[0].restarts_total == 0, child.log_tail(40)
    logs = [log.read_text() for log in set(standalone.outputs()) - others]
    assert any("CoarseGrainedExecutorBackend" in text for text in logs)
    assert not any("INFO RocksDB" in text for text in logs), "they log as the driver does"
