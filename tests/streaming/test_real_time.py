"""Spark's real-time mode through a real broker: what readers of the sink end up with.

An epoch is a minute long, from the first one on, unless a case says otherwise: results that come
earlier have come within one, before anything was committed.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.errors import ConfigError, RejoinError, StateError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.status import read_status
from tests.harness.real_time import (
    EXACTLY_ONCE,
    THREADS,
    TIMED,
    UPSERTS,
    Job,
    Reader,
    Row,
    at,
    texts,
)
from tests.harness.shop import Shop, wait_until
from tests.harness.spark import spark_session

PAID = "INSERT INTO paid SELECT o.id, p.amount FROM orders o LEFT JOIN payments p ON o.id = p.id"
PAID += " AND {condition};"
RATED = """\
INSERT INTO priced SELECT o.id, r.rate
FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.`at` AS r ON o.currency = r.currency;
"""
TAGGED = """\
INSERT INTO tagged
SELECT o.id, t.tag, v.weight FROM orders o CROSS JOIN UNNEST(o.tags) AS t (tag)
JOIN (VALUES ('a', 1), ('b', 2)) AS v (tag, weight) ON t.tag = v.tag;
"""
FOLLOWED = """\
INSERT INTO followed SELECT o.id, f.item FROM orders o LEFT JOIN orders f ON o.first_id = f.id;
"""
LEFT_JOIN = "INSERT INTO named SELECT o.id, o.item, c.name FROM orders o LEFT JOIN names"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark"), f"local[{THREADS}]") as session:
        yield session


@pytest.fixture(
    params=[{}, pytest.param(EXACTLY_ONCE, marks=pytest.mark.long)],
    ids=["at-least-once", "exactly-once"],
)
def shop(request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Shop:
    return Shop(broker, tmp_path, delivery=request.param)


def upserts(shop: Shop) -> str:
    """Two tables with one key, and a third for the join."""
    shop.create("orders", "names", "named")
    return (
        shop.table("orders", UPSERTS.format(column="item STRING"), "upsert-kafka")
        + shop.table("names", UPSERTS.format(column="name STRING"), "upsert-kafka")
        + shop.table(
            "named",
            UPSERTS.format(column="item STRING, name STRING"),
            "upsert-kafka",
            **shop.delivery,
        )
        + f"{LEFT_JOIN} c ON o.id = c.id;"
    )


def named(items: dict[int, str], names: dict[int, str]) -> list[Row]:
    return [{"id": i, "item": item, "name": names.get(i)} for i, item in items.items()]


def test_both_modes_go_on_where_the_other_has_stopped(spark: SparkSession, shop: Shop) -> None:
    """Updates and deletions of both sides; exactly-once ledgers in the micro-batches between."""
    job, reader = Job(spark, shop, upserts(shop)), Reader(shop, "named")
    items = {i: f"item {i}" for i in range(60)}
    names = {i: f"name {i}" for i in range(0, 60, 2)}

    def send() -> None:
        shop.send("names", [{"id": i, "name": n} for i, n in names.items()], key="id")
        shop.send("orders", [{"id": i, "item": item} for i, item in items.items()], key="id")

    send()
    with job.runs() as running:
        running.until(reader, named(items, names))
        shop.delete("orders", "id", [3, 4])
        shop.delete("names", "id", [6])
        items.pop(3), items.pop(4), names.pop(6)
        running.until(reader, named(items, names))
        assert running.epochs == 0  # nothing of this has waited for a commit
    for round_, mode in enumerate(("micro-batch", "real-time", "micro-batch", "real-time")):
        items |= {i: f"item {i} of {round_}" for i in range(round_, 70, 5)}
        names |= {i: f"name {i} of {round_}" for i in range(round_, 70, 7)}
        send()
        with job.runs(mode) as running:
            running.until(reader, named(items, names))
            first = running.epochs if mode == "real-time" and not shop.delivery else None
            assert running.query.manifest.unledgered == first


def test_an_epoch_of_transactions_is_not_taken_over(spark: SparkSession, shop: Shop) -> None:
    job = Job(spark, shop, upserts(shop))
    shop.send("orders", [{"id": 1, "item": "a"}], key="id")
    with job.runs("micro-batch") as running:
        running.until(Reader(shop, "named"), named({1: "a"}, {}))
    last = running.query.folder.next_epoch - 1
    (Path(running.query.folder.path) / "commits" / str(last)).unlink()
    query = job.open("real-time")
    with pytest.raises(StateError, match="REAL_TIME_EPOCH_OPEN"):
        query.life().poll()
    query.folder.unlock()


def test_slots_are_counted_before_the_query_starts(spark: SparkSession, shop: Shop) -> None:
    job = Job(spark, shop, upserts(shop))
    job.given["rejoin.parallelism"] = "13"
    query = job.open("real-time")
    with pytest.raises(ConfigError, match=r"needs 17 task slots .*4 for reading Kafka.*\[16\]"):
        query.life().poll()
    query.folder.unlock()


def test_watermarks_come_within_the_epoch(spark: SparkSession, shop: Shop) -> None:
    """An event-time temporal join; what time has come to is in state after a stop."""
    shop.create("orders", "rates", "priced")
    sql = (
        shop.table("orders", f"id BIGINT, currency STRING, {TIMED}")
        + shop.table(
            "rates",
            f"currency STRING, rate INT, {TIMED}, PRIMARY KEY (currency) NOT ENFORCED",
            "upsert-kafka",
        )
        + shop.table("priced", UPSERTS.format(column="rate INT"), "upsert-kafka", **shop.delivery)
        + RATED
    )
    job, reader = Job(spark, shop, sql), Reader(shop, "priced")

    def rates(second: int, rate: int) -> None:
        """Of many currencies, so that each partition gets to know the time."""
        rows = [{"currency": f"c{n}", "rate": rate + n, "at": at(second)} for n in range(20)]
        shop.send("rates", rows, key="currency")

    def orders(first: int, second: int) -> None:
        rows = [{"id": first + n, "currency": f"c{n}", "at": at(second)} for n in range(20)]
        shop.send("orders", rows, key="id")

    with job.runs() as running:
        rates(10, 100)
        orders(0, 15)
        rates(20, 200)
        orders(20, 25)
        first: list[Row] = [{"id": n, "rate": 100 + n} for n in range(20)]
        running.until(reader, first)  # those of second 25 wait for the rates' time
        rates(30, 300)
        second: list[Row] = [{"id": 20 + n, "rate": 200 + n} for n in range(20)]
        orders(40, 35)
        running.until(reader, first + second)
        assert running.epochs == 0
    with job.runs("micro-batch") as running:
        orders(60, 12)  # late: behind the watermark, which is known only from the epoch before
        orders(80, 36)
        orders(100, 50)
        rates(40, 400)
        on_time: list[Row] = [
            {"id": base + n, "rate": 300 + n} for base in (40, 80) for n in range(20)
        ]
        running.until(reader, first + second + on_time)


def payments(shop: Shop, condition: str) -> str:
    """Orders with their payments."""
    shop.create("orders", "payments", "paid")
    return (
        shop.table("orders", f"id BIGINT, {TIMED}, pt AS PROCTIME()")
        + shop.table("payments", f"id BIGINT, amount INT, {TIMED}, pt AS PROCTIME()")
        + shop.table("paid", UPSERTS.format(column="amount INT"), "upsert-kafka", **shop.delivery)
        + PAID.format(condition=condition)
    )


def paid(ids: Iterable[int], amount: int | None) -> list[Row]:
    return [{"id": i, "amount": amount} for i in ids]


def test_rows_are_padded_within_the_epoch(spark: SparkSession, shop: Shop) -> None:
    sql = payments(shop, "p.`at` BETWEEN o.`at` AND o.`at` + INTERVAL '5' SECOND")
    reader = Reader(shop, "paid")
    shop.send("orders", [{"id": i, "at": at(1)} for i in range(20)], key="id")
    shop.send("payments", [{**row, "at": at(3)} for row in paid(range(9), 7)], key="id")
    with Job(spark, shop, sql).runs() as running:
        running.until(reader, paid(range(9), 7))
        shop.send("orders", [{"id": i, "at": at(30)} for i in range(100, 120)], key="id")
        shop.send("payments", [{**r, "at": at(30)} for r in paid(range(100, 120), 8)], key="id")
        after = paid(range(9), 7) + paid(range(9, 20), None) + paid(range(100, 120), 8)
        running.until(reader, after)
        assert running.epochs == 0


def test_the_clock_ticks_within_the_epoch(spark: SparkSession, shop: Shop) -> None:
    """Rows whose processing time is over are padded, and nothing else wakes them up."""
    sql = payments(shop, "p.pt BETWEEN o.pt AND o.pt + INTERVAL '2' SECOND")
    shop.send("orders", [{"id": i, "at": at(1)} for i in range(20)], key="id")
    with Job(spark, shop, sql).runs() as running:
        running.until(Reader(shop, "paid"), paid(range(20), None))
        assert running.epochs == 0


def test_elements_and_constants(spark: SparkSession, shop: Shop) -> None:
    """An array grows and shrinks; its elements are joined with rows of the job file."""
    shop.create("orders", "tagged")
    columns = "id BIGINT, tag STRING, weight INT, PRIMARY KEY (id, tag) NOT ENFORCED"
    sql = (
        shop.table("orders", UPSERTS.format(column="tags ARRAY<STRING>"), "upsert-kafka")
        + shop.table("tagged", columns, "upsert-kafka", **shop.delivery)
        + TAGGED
    )
    reader = Reader(shop, "tagged")
    weights = {"a": 1, "b": 2}

    def tagged(tags: str, ids: range) -> list[Row]:
        return [{"id": i, "tag": t, "weight": weights[t]} for i in ids for t in tags]

    with Job(spark, shop, sql).runs() as running:
        shop.send("orders", [{"id": i, "tags": ["a", "x"]} for i in range(20)], key="id")
        running.until(reader, tagged("a", range(20)))
        shop.send("orders", [{"id": i, "tags": ["b", "a"]} for i in range(10)], key="id")
        running.until(reader, tagged("ab", range(10)) + tagged("a", range(10, 20)))
        shop.send("orders", [{"id": i, "tags": []} for i in range(15)], key="id")
        running.until(reader, tagged("a", range(15, 20)))
        assert running.epochs == 0


def test_a_table_is_joined_with_itself(spark: SparkSession, shop: Shop) -> None:
    shop.create("orders", "followed")
    sql = (
        shop.table("orders", "id BIGINT, item STRING, first_id BIGINT")
        + shop.table(
            "followed", UPSERTS.format(column="item STRING"), "upsert-kafka", **shop.delivery
        )
        + FOLLOWED
    )
    reader, items = Reader(shop, "followed"), dict[int, str]()

    def send(ids: range) -> None:
        items.update({i: f"item {i}" for i in ids})
        rows: list[Row] = [{"id": i, "item": items[i], "first_id": i // 2} for i in ids]
        shop.send("orders", rows, key="id")

    def followed() -> list[Row]:
        return [{"id": i, "item": items.get(i // 2)} for i in items]

    with Job(spark, shop, sql).runs() as running:
        send(range(5, 30))
        running.until(reader, followed())
        send(range(5))  # which those of before have waited for
        running.until(reader, followed())
        assert running.epochs == 0


def test_the_first_epochs_are_short(spark: SparkSession, shop: Shop) -> None:
    """In each of them rows wait for the clock's first mark; a restart has no more of them."""
    sql = payments(shop, "p.pt BETWEEN o.pt - INTERVAL '1' HOUR AND o.pt + INTERVAL '1' HOUR")
    job = Job(spark, shop, sql, **{"rejoin.real-time.warm-up-epochs": "4"})
    reader, found = Reader(shop, "paid"), list[Row]()

    def send(amount: int) -> None:
        ids = range(amount, amount + 20)
        found.extend(paid(ids, amount))
        rows: list[Row] = [{**row, "at": at(1)} for row in paid(ids, amount)]
        shop.send("orders", rows, key="id")
        shop.send("payments", rows, key="id")

    for first, committed in ((0, 4), (100, 5)):
        send(first)  # read in short epochs, if there are any
        with job.runs() as running:
            running.until_committed(committed)
            send(first + 50)
            running.until(reader, found)
            assert running.epochs == committed


def test_processing_time_waits_behind_its_gate(spark: SparkSession, shop: Shop) -> None:
    """The initial content of the build side is complete before the first row is joined."""
    shop.create("orders", "names", "named")
    sql = (
        shop.table("orders", "id BIGINT, item STRING, pt AS PROCTIME()")
        + shop.table("names", UPSERTS.format(column="name STRING"), "upsert-kafka")
        + shop.table(
            "named",
            UPSERTS.format(column="item STRING, name STRING"),
            "upsert-kafka",
            **shop.delivery,
        )
        + f"{LEFT_JOIN} FOR SYSTEM_TIME AS OF o.pt AS c ON o.id = c.id;"
    )
    names = {i: f"name {i}" for i in range(0, 500)}
    items = {i: f"item {i}" for i in range(20)}
    # a transaction ends with a mark, behind the last record that a reader gets to see
    servers = {"bootstrap.servers": shop.broker.bootstrap_servers}
    producer = Producer({**servers, "transactional.id": shop.topic("names")})
    producer.init_transactions(60)
    producer.begin_transaction()
    for i, name in names.items():
        key = json.dumps({"id": i})
        producer.produce(shop.topic("names"), json.dumps({"id": i, "name": name}), key)
    producer.commit_transaction(60)
    shop.send("orders", [{"id": i, "item": item} for i, item in items.items()], key="id")
    reader = Reader(shop, "named")
    with Job(spark, shop, sql).runs() as running:
        running.until(reader, named(items, names))
        assert reader.seen == len(items)  # none was joined with less
        assert running.epochs == 0


def test_a_materialiser_keeps_the_changes_of_a_sink_key_in_order(
    spark: SparkSession, shop: Shop
) -> None:
    """Rows that move between join keys, hence between tasks, under one key of the sink."""
    shop.create("orders", "names", "named")
    sql = (
        shop.table(
            "orders", "id BIGINT, item STRING, name_id BIGINT", value__format="debezium-json"
        )
        + shop.table("names", UPSERTS.format(column="name STRING"), "upsert-kafka")
        + shop.table(
            "named",
            UPSERTS.format(column="item STRING, name STRING"),
            "upsert-kafka",
            **shop.delivery,
        )
        + f"{LEFT_JOIN} c ON o.name_id = c.id;"
    )
    names = {i: f"name {i}" for i in range(9)}
    shop.send("names", [{"id": i, "name": n} for i, n in names.items()], key="id")
    moves = [(i, turn) for turn in range(12) for i in range(8)]

    def order(i: int, turn: int) -> Row:
        return {"id": i, "item": f"turn {turn}", "name_id": (i + turn) % 9}

    events: list[Row] = [
        {"before": order(i, turn - 1), "after": order(i, turn), "op": "u"}
        if turn
        else {"before": None, "after": order(i, 0), "op": "c"}
        for i, turn in moves
    ]
    reader = Reader(shop, "named")
    with Job(spark, shop, sql).runs() as running:
        shop.send("orders", events, partition=0)
        last: list[Row] = [
            {"id": i, "item": "turn 11", "name": names[(i + 11) % 9]} for i in range(8)
        ]
        running.until(reader, last)
        assert running.epochs == 0


def test_bad_and_late_records_and_new_partitions(spark: SparkSession, shop: Shop) -> None:
    """Short epochs: a partition that a topic gets is read from the next one on."""
    shop.create("orders", "names", "named", "dead")
    sql = (
        shop.table(
            "orders",
            "id BIGINT, item STRING",
            rejoin__dead_letter__topic=shop.topic("dead"),
        )
        + shop.table("names", UPSERTS.format(column="name STRING"), "upsert-kafka")
        + shop.table(
            "named",
            UPSERTS.format(column="item STRING, name STRING"),
            "upsert-kafka",
            **shop.delivery,
        )
        + f"{LEFT_JOIN} c ON o.id = c.id;"
    )
    job = Job(spark, shop, sql, **{"rejoin.real-time.batch-interval": "5 s"})
    reader = Reader(shop, "named")
    with job.runs() as running:
        shop.send("orders", [{"id": 1, "item": "a"}, b"no JSON", {"id": 2, "item": "b"}])
        running.until(reader, named({1: "a", 2: "b"}, {}))
        admin = AdminClient({"bootstrap.servers": shop.broker.bootstrap_servers})
        for made in admin.create_partitions([NewPartitions(shop.topic("orders"), 3)]).values():
            made.result(30)
        shop.send("orders", [{"id": 3, "item": "c"}], partition=2)
        running.until(reader, named({1: "a", 2: "b", 3: "c"}, {}))
        assert running.epochs > 0
    assert [m.value() for m in shop.messages("dead", lambda found: len(found) >= 1)] == [b"no JSON"]


def test_deleted_records_are_counted_and_those_behind_them_read(
    spark: SparkSession, shop: Shop
) -> None:
    """Also in a partition that is new."""
    job = Job(spark, shop, upserts(shop), **{"rejoin.on-data-loss": "continue"})
    reader = Reader(shop, "named")
    with job.runs() as running:
        shop.send("orders", [{"id": 1, "item": "a"}], "id", partition=1)
        running.until(reader, named({1: "a"}, {}))
    admin = AdminClient({"bootstrap.servers": shop.broker.bootstrap_servers})
    for made in admin.create_partitions([NewPartitions(shop.topic("orders"), 3)]).values():
        made.result(30)
    orders = shop.topic("orders")
    behind = [TopicPartition(orders, 1, 3), TopicPartition(orders, 2, 1)]
    for partition, ids in ((1, (2, 3, 4)), (2, (5, 6))):
        shop.send("orders", [{"id": i, "item": "b"} for i in ids], "id", partition=partition)
    for deleted in admin.delete_records(behind).values():
        deleted.result(30)
    with job.runs() as running:
        running.until(reader, named({1: "a", 4: "b", 6: "b"}, {}))
    assert sum(Kernel.of(spark).counters(spark).of(job.name)["lost"].values()) == 3


@pytest.mark.parametrize(
    ("bad", "code"),
    [(b"no JSON", "RECORD_REJECTED"), ({"id": 2, "item": "x" * 2_000}, "RECORD_TOO_LARGE")],
    ids=["before the exchange", "behind it"],
)
def test_a_task_that_fails_ends_the_others(
    spark: SparkSession, shop: Shop, bad: Row | bytes, code: str
) -> None:
    """Within the epoch; the next start begins with the same records."""
    shop.create("orders", "names", "named")
    failing = {"rejoin__on_error": "fail"}
    limit = {"properties__max__request__size": "1000"}
    items, both = UPSERTS.format(column="item STRING"), "item STRING, name STRING"
    sql = (
        shop.table("orders", items, "upsert-kafka", **failing)
        + shop.table("names", UPSERTS.format(column="name STRING"), "upsert-kafka")
        + shop.table(
            "named",
            UPSERTS.format(column=both),
            "upsert-kafka",
            **shop.delivery,
            **failing,
            **limit,
        )
        + f"{LEFT_JOIN} c ON o.id = c.id;"
    )
    job, reader = Job(spark, shop, sql), Reader(shop, "named")
    shop.send("orders", [{"id": 1, "item": "a"}], "id")
    with job.runs() as running:
        running.until(reader, named({1: "a"}, {}))
        shop.send("orders", [bad], "id")
        with pytest.raises(RejoinError, match=code):
            running.until(reader, [])
    with job.runs() as running, pytest.raises(RejoinError, match=code):
        running.until(reader, [])
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_a_killed_driver_repeats_its_epoch(shop: Shop) -> None:
    """`rejoin run` itself: as many threads as it occupies, and the same rows after a crash.

    The names come only once: what is joined with them later comes from state.
    """
    sql = "SET 'rejoin.mode' = 'real-time';\nSET 'rejoin.real-time.batch-interval' = '5 s';\n"
    sql += "SET 'rejoin.real-time.warm-up-epochs' = '2';\n"
    sql += upserts(shop)
    reader = Reader(shop, "named")
    items: dict[int, str] = {}
    names = {i: f"name {i}" for i in range(0, 300, 2)}
    shop.send("names", [{"id": i, "name": n} for i, n in names.items()], key="id")

    def send(turn: int) -> None:
        items.update({i: f"item {i} of {turn}" for i in range(turn, 300, 3)})
        shop.send("orders", [{"id": i, "item": items[i]} for i in items], key="id")

    def committed() -> bool:
        found = read_status(shop.folder / "status")
        return found is not None and any(query.epoch is not None for query in found.queries)

    child = shop.start(sql)
    for turn, moment in enumerate((lambda: True, committed)):
        send(turn)
        wait_until(lambda: reader.read() == texts(named(items, names)), child)
        wait_until(moment, child)
        send(turn + 1)  # read or not, written or not
        child.kill()
        child = shop.start(sql)
    send(3)
    wait_until(lambda: reader.read() == texts(named(items, names)), child)
    child.stop(60.0)
    assert child.exit_code == 0, child.log_tail(40)
    assert shop.status().queries[0].lag_records == 0
