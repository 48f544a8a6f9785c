"""Dead letters of running jobs: once each whatever crashes, of any size, not without end."""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from spark_jobs.cli import app
from tests.harness.shop import PARTITIONS, START_S, Row, Shop, text, wait_until
from tests.streaming.test_run import STOP_S, epoch, shop

__all__ = ["shop"]  # the fixture

COPY = "INSERT INTO copy_sink SELECT id, item FROM orders;\n"
LARGE = "INSERT INTO large_sink SELECT id, item FROM orders WHERE id >= 200;\n"
LIMIT = 20_000
ENDS = {"scan__bounded__mode": "latest-offset"}
FIX = "import sys; sys.stdout.write(sys.stdin.read().replace(',}', '}'))"


def item(i: int) -> Row:
    return {"id": i, "item": f"i{i % 7}"}


def misspelt(i: int) -> bytes:
    return json.dumps(item(i)).replace("}", ",}").encode()


def is_broken(i: int) -> bool:
    return i % 5 == 0


def headers(message: Message) -> dict[str, str]:
    return {k: bytes(v or b"").decode() for k, v in message.headers() or []}


def letters_of(shop: Shop, count: int) -> list[Message]:
    return shop.messages("letters", lambda found: len(found) >= count)


def create(shop: Shop, name: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": shop.broker.bootstrap_servers})
    made = admin.create_topics([NewTopic(shop.topic(name), PARTITIONS, 1, config=config)])
    made[shop.topic(name)].result(30)


def places(letters: Sequence[Message]) -> Counter[tuple[str, str, str]]:
    told = [headers(m) for m in letters]
    return Counter(
        (t["rejoin.query"], t["__connect.errors.partition"], t["__connect.errors.offset"])
        for t in told
    )


def copies_job(shop: Shop) -> str:
    return (
        "SET 'rejoin.max-offsets-per-trigger' = '50';\nSET 'rejoin.trigger-interval' = '0 ms';\n"
        + shop.table(
            "orders", "id BIGINT, item STRING", rejoin__dead_letter__topic=shop.topic("letters")
        )
        + shop.table("copy_sink", "id BIGINT, item STRING")
        + shop.table("large_sink", "id BIGINT, item STRING")
        + COPY
        + LARGE
    )


def check_order(found: Sequence[Message], query: str, partition: int) -> None:
    """The letters of a query stand in their source's partition, in its order."""
    told = [headers(m) for m in found if m.partition() == partition]
    own = [t for t in told if t["rejoin.query"] == query]
    assert {t["__connect.errors.partition"] for t in own} == {str(partition)}
    offsets = [int(t["__connect.errors.offset"]) for t in own]
    assert offsets == sorted(offsets)
    assert all(t["rejoin.epoch"].isdigit() for t in own)


@pytest.mark.timeout(900)
def test_letters_survive_a_kill_and_replays_repair_the_results(shop: Shop, tmp_path: Path) -> None:
    shop.create("orders", "letters", "copy_sink", "large_sink")
    count = 400
    rows = [item(i) for i in range(count)]
    broken = [i for i in range(count) if is_broken(i)]
    shop.send("orders", [misspelt(i) if is_broken(i) else rows[i] for i in range(count)])
    sql = copies_job(shop)
    child = shop.start(sql)
    wait_until(lambda: epoch(shop) >= 1, child)
    child.kill()
    child = shop.start(sql)
    found = letters_of(shop, 2 * len(broken))
    assert set(places(found).values()) == {1}
    assert len(found) == 2 * len(broken)
    for query in ("copy_sink", "large_sink"):
        for partition in range(PARTITIONS):
            check_order(found, query, partition)
    fix = tmp_path / "fix.py"
    fix.write_text(FIX, encoding="utf-8")
    job = str(shop.folder / "job.sql")
    replay = ["dlq", "replay", job, "--yes", "--json", "--fix", f"{sys.executable} {fix}"]
    done = CliRunner().invoke(app, replay)
    assert json.loads(done.output)["replayed"] == len(broken), done.output
    assert shop.rows("copy_sink", count) == Counter(text(row) for row in rows)
    assert shop.rows("large_sink", count // 2) == Counter(text(row) for row in rows[200:])
    child.stop(STOP_S)
    assert child.exit_code == 0, child.log_tail(40)
    assert json.loads(CliRunner().invoke(app, replay).output)["replayed"] == 0


def test_a_wrong_schema_does_not_drain_the_topic(shop: Shop) -> None:
    shop.create("orders", "letters", "copy_sink")
    shop.send("orders", [b"<xml/>"] * 8000)
    child = shop.start(
        shop.table(
            "orders",
            "id BIGINT, item STRING",
            rejoin__dead_letter__topic=shop.topic("letters"),
            **ENDS,
        )
        + shop.table("copy_sink", "id BIGINT, item STRING")
        + COPY
    )
    assert child.wait(START_S)
    assert child.exit_code == 2, child.log_tail(40)
    assert "DEAD_LETTER_LIMIT" in child.log_tail(4)
    assert re.search(r"(\d+) of the last \1 records \(100 %\)", child.log_tail(4))
    assert f"json-malformed, such as {shop.topic('orders')}[" in child.log_tail(4)
    assert len(letters_of(shop, 0)) < 1000


def too_large_job(shop: Shop, **sink: str) -> str:
    return (
        shop.table(
            "orders",
            "id BIGINT, item STRING",
            rejoin__dead_letter__topic=shop.topic("letters"),
            **ENDS,
        )
        + shop.table(
            "copy_sink",
            "id BIGINT, item STRING, PRIMARY KEY (id) NOT ENFORCED",
            "upsert-kafka",
            **sink,
        )
        + COPY
    )


def noise(seed: int) -> str:
    """Text that no compression makes smaller than the limit."""
    return random.Random(seed).randbytes(2 * LIMIT).hex()  # noqa: S311


def test_what_is_too_large_becomes_a_letter_without_its_value(shop: Shop) -> None:
    create(shop, "orders")
    create(shop, "letters", **{"max.message.bytes": str(LIMIT)})
    create(shop, "copy_sink", **{"max.message.bytes": str(LIMIT)})
    bad = b"{" + noise(1).encode()
    rows = [item(1), {"id": 2, "item": noise(2)}, {"id": 3, "item": "x" * 3 * LIMIT}, item(4)]
    shop.send("orders", [*rows, bad])
    sql = too_large_job(shop, rejoin__dead_letter__topic=shop.topic("letters"))
    child = shop.run(sql)
    results = {m.key(): m.value() for m in shop.messages("copy_sink", lambda f: len(f) >= 3)}
    assert {json.loads(k)["id"] for k in results} == {1, 3, 4}, child.log_tail()
    found = {headers(m)["rejoin.reason"]: m for m in letters_of(shop, 2)}
    assert {m.value() for m in found.values()} == {None}
    decoded, result = found["json-malformed"], found["record-too-large"]
    assert headers(decoded)["rejoin.value.omitted"] == str(len(bad))
    assert headers(decoded)["__connect.errors.offset"].isdigit()
    assert json.loads(result.key()) == {"id": 2}
    assert int(headers(result)["rejoin.value.omitted"]) > 2 * LIMIT
    assert headers(result)["__connect.errors.stage"] == "KAFKA_PRODUCE"
    (query,) = shop.status().queries
    assert query.rejects == {"json-malformed": 1, "record-too-large": 1}


def test_a_result_above_the_limit_fails_with_its_key(shop: Shop) -> None:
    shop.create("orders", "letters", "copy_sink")
    shop.send("orders", [{"id": 2, "item": noise(2)}])
    child = shop.start(too_large_job(shop, properties__max__request__size=str(LIMIT)))
    assert child.wait(START_S)
    assert child.exit_code == 2, child.log_tail(40)
    told = child.log_tail(4)
    assert "RECORD_TOO_LARGE" in told
    assert '{"id":2}' in told
    assert f"more than the {LIMIT} of the producer's 'max.request.size'" in told
