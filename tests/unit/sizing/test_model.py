"""The arithmetic of sizing on loads and coefficients whose answers can be computed by hand."""

import math
from dataclasses import replace

import pytest

from spark_jobs.sizing.given import Executor, Given
from spark_jobs.sizing.load import distinct
from spark_jobs.sizing.model import first_limit
from tests.unit.sizing.sizes import (
    APPENDS,
    INTERVAL,
    NOTHING,
    PLAIN,
    REGULAR,
    TEMPORAL,
    loads,
    model,
)

RATES = {"orders": 80_000.0, "rates": 20_000.0}
TWO = {"orders": 50_000.0, "pings": 50_000.0}
WIDE = Executor(cores=4, memory_mb=1_000_000, network_mbit=1e9)


def given(**changes: object) -> Given:
    base = Given(rows_per_second=RATES, keys={"rates": 1_000_000.0}, executor=WIDE)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_distinct_keys_of_an_epoch() -> None:
    assert distinct(1_000, 1_000) == pytest.approx(1_000 * (1 - math.exp(-1)))
    assert distinct(5, None) == 5


def test_cores_and_rate_by_processor_time() -> None:
    # 100 k rows of 10 us are 1 s of work, to be done in the half second that waiting leaves
    size = model(TEMPORAL, given()).size(1)
    assert size.cores_needed == pytest.approx(2.0)
    assert size.epoch_s == pytest.approx(0.5 + 1.0 / 4)
    assert size.most_rate == pytest.approx(4 * 0.5 / 10e-6)
    assert size.first_limit == "CPU"
    assert model(TEMPORAL, given()).size(10).rates["CPU"] == pytest.approx(2_000_000)


def test_each_cost_counts_what_it_is_of() -> None:
    # a row per epoch of each key of two, once per row and side
    asked = given(
        rows_per_second={"users": 30.0, "rates": 10.0},
        keys={"users": 2.0, "rates": 1e12},
        record_bytes={"users": 100.0, "rates": 200.0},
    )

    def cpu(**changes: float) -> float:
        return model(REGULAR, asked, replace(NOTHING, **changes)).cpu_s()

    assert cpu(regular_row_us=1.0) == pytest.approx(40e-6)
    assert cpu(temporal_row_us=1.0) == 0
    assert cpu(record_byte_ns=1.0) == pytest.approx((3_000 + 2_000) * 1e-9)
    assert cpu(touched_key_us=1.0) == pytest.approx(12e-6)
    assert cpu(executor_row_us=1.0) == pytest.approx(40e-6)
    assert cpu(result_us=1.0) == pytest.approx(40e-6)
    assert cpu(regular_row_us=1.0, touched_key_us=2.0) == pytest.approx(64e-6)
    few = replace(asked, keys={"users": 2.0, "rates": 2.0})
    results = model(REGULAR, few, NOTHING).results()
    assert results == pytest.approx(2.0), "changes of a key in an epoch are one result"
    assert model(REGULAR, replace(few, results_per_second=7.0), NOTHING).results() == 7.0


def test_tasks_cost_and_wait() -> None:
    known = replace(PLAIN, task_cpu_ms=10.0, task_wait_ms=1.0, driver_task_ms=2.0)
    found = model(TEMPORAL, given(), known).size(1)
    assert found.tasks == 4
    assert found.epoch_s == pytest.approx(0.5 + 0.001 + 4 * 0.002 + (1.0 + 4 * 0.01) / 4)
    # the driver starts one task after the other, however many cores there are
    assert model(TEMPORAL, given(), known).fixed_s(100) == pytest.approx(0.5 + 0.001 + 0.2)


def test_key_groups_come_first() -> None:
    # 400 cores, 128 groups: 128 tasks of one group each
    size = model(TEMPORAL, given()).size(100)
    assert size.first_limit == "key groups"
    assert size.rates["key groups"] == pytest.approx(128 * 0.5 / 10e-6)
    # 100 tasks of at most two groups work as long as 64 would
    assert model(TEMPORAL, given(), parallelism=100).join_cores(400) == 64
    size = model(TEMPORAL, given(), parallelism=2).size(1)
    assert size.first_limit == "parallelism"
    assert size.rates["parallelism"] == pytest.approx(2 * 0.5 / 10e-6)


def test_source_partitions_come_first() -> None:
    known = replace(PLAIN, read_share=1.0)
    # four fifths of all records are orders: two tasks read them while half a task reads the rest
    size = model(TEMPORAL, given(partitions={"orders": 2.0}), known).size(1)
    assert size.rates["source partitions"] == pytest.approx(2 / 0.8 * 0.5 / 10e-6)
    assert size.first_limit == "source partitions"
    assert "source partitions" not in model(TEMPORAL, given(), known).size(1).rates


def test_memory_network_and_records_per_epoch_come_first() -> None:
    small = replace(WIDE, memory_mb=400)
    size = model(TEMPORAL, given(executor=small)).size(1)
    # 100 MB beside the base are as many thousands of records
    assert size.rates["memory"] == pytest.approx(100 * 1024)
    assert size.first_limit == "memory"
    slow = replace(WIDE, network_mbit=8.0)
    asked = given(executor=slow, record_bytes={"orders": 100.0, "rates": 100.0})
    size = model(TEMPORAL, asked, replace(PLAIN, shuffle_ratio=0.0, kafka_out_ratio=0.0)).size(1)
    assert size.rates["network"] <= 1e6 / 100 * 1.001
    assert size.first_limit == "network"
    size = model(TEMPORAL, given(), max_offsets=40_000).size(1)
    # half of the orders fit into an epoch
    assert size.rates["records per epoch"] == pytest.approx(50_000)
    assert size.first_limit == "records per epoch"
    assert size.most_rate == pytest.approx(50_000)


def test_an_epoch_that_is_shorter_than_its_wait() -> None:
    size = model(TEMPORAL, given(epoch_s=0.4)).size(1)
    assert size.first_limit == "epoch length"
    assert size.most_rate == 0
    assert math.isinf(size.cores_needed)


def test_a_limit_that_hardly_counts_is_not_named() -> None:
    assert first_limit({"CPU": 100.0, "key groups": 99.0}) == "CPU"
    assert first_limit({"CPU": 100.0, "key groups": 90.0}) == "key groups"


def test_bytes_by_path() -> None:
    asked = given(record_bytes={"orders": 100.0, "rates": 50.0}, text_bytes={"orders": 16.0})
    one = model(TEMPORAL, asked).traffic()
    assert one.kafka_in == 80_000 * 100 + 20_000 * 50
    # a result has two columns, one of them a text of 16 bytes; each order is a result
    assert one.kafka_out == 80_000 * (8 + 16 + 16)
    # rows of id, and of v with its text; the key is an INT; times stand in the envelope
    assert one.shuffle == 80_000 * (16 + 16) + 20_000 * (16 + 16 + 16)
    assert one.per_executor(1) == max(one.kafka_in, one.kafka_out + one.checkpoint)
    kept = one.shuffle / 2
    assert one.per_executor(2) == max(
        (one.kafka_in + kept) / 2, (one.kafka_out + one.checkpoint + kept) / 2
    )


def test_a_regular_join_writes_a_key_once_an_epoch() -> None:
    keys = {"users": 10.0, "rates": 10.0}
    asked = given(rows_per_second={"users": 1e6, "rates": 1e6}, keys=keys)
    traffic = model(REGULAR, asked, replace(PLAIN, regular_changelog_ratio=1.0)).traffic()
    # k and city, 20 bytes beside them; v and its text, and as much
    assert traffic.checkpoint == pytest.approx(10 * (8 + 16 + 20) + 10 * (8 + 8 + 16 + 20))


def test_state_by_what_bounds_it() -> None:
    [query] = loads(INTERVAL, given(rows_per_second=TWO, keys={}))
    left, right = query.operators[0].state
    assert left.rows == 50_000 * 600
    assert (right.rows, left.grows) == (0, False)
    [query] = loads(TEMPORAL, given())
    [build] = query.operators[0].state
    # v and its text, and 30 bytes beside
    assert (build.rows, build.bytes_each) == (1_000_000, 8 + 8 + 16 + 30)
    [query] = loads(APPENDS, given(rows_per_second=TWO, keys={}))
    assert [side.grows for side in query.operators[0].state] == [True, True]
    assert query.operators[0].state[0].rows == 50_000 * 86_400
    ttl = "SET 'table.exec.state.ttl' = '1 h';"
    [query] = loads(ttl + APPENDS, given(rows_per_second=TWO, keys={}))
    assert [side.rows for side in query.operators[0].state] == [50_000 * 3_600] * 2
    [query] = loads(ttl + REGULAR, given(rows_per_second={"users": 1.0, "rates": 1e9},
                                         keys={"users": 1e6, "rates": 1e6}))  # fmt: skip
    assert [side.rows for side in query.operators[0].state] == [3_600, 1e6]


def test_an_operator_reads_what_the_one_below_it_makes() -> None:
    chain = """INSERT INTO out SELECT j.id, j.v FROM (SELECT o.id, r.v FROM orders o
      LEFT JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON o.k = r.k) j
      JOIN pings p ON j.id = p.k;"""
    asked = given(rows_per_second={**RATES, "pings": 7.0}, keys={"rates": 1e6, "pings": 1.0})
    [query] = loads(chain, asked)
    below, above = query.operators
    assert (below.kind, above.kind) == ("temporal", "regular")
    [fed, read] = above.inputs
    assert (fed.rate, fed.table, read.rate) == (80_000, None, 7)
    assert query.last == (above,)


def test_a_scan_before_a_sink_has_no_tasks() -> None:
    found = model("INSERT INTO out SELECT id, note FROM orders;",
                  given(rows_per_second={"orders": 100.0}))  # fmt: skip
    assert found.tasks(4) == 0
    assert found.traffic().shuffle == 0
    assert found.results() == 100
