"""Which operator heals values that Debezium leaves out, and where filters then stand."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.nodes.physical import (
    KafkaScan,
    KafkaSink,
    KeyChanges,
    Normalize,
    Physical,
    RegularJoin,
    Rekey,
    TemporalJoin,
)
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.unit.plan.conftest import of_kind

_KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'localhost:9092'"
_DUPLICATES = "SET 'table.exec.source.cdc-events-duplicate' = 'true';"


def table(name: str, options: str = "", key: str = "id") -> str:
    primary = f", PRIMARY KEY ({key}) NOT ENFORCED" if key else ""
    return (
        f"CREATE TABLE {name} (id INT, note STRING, n INT, price DECIMAL(38, 2),"
        f" at TIMESTAMP(3) METADATA FROM 'value.source.timestamp', label AS LOWER(note),"
        f" WATERMARK FOR at AS at{primary})"
        f" WITH ({_KAFKA}, 'topic' = '{name}', 'format' = 'debezium-json'{options});"
    )


PROBES = (
    "CREATE TABLE probes (k INT, at TIMESTAMP(3), WATERMARK FOR at AS at)"
    f" WITH ({_KAFKA}, 'topic' = 'probes', 'format' = 'json');"
)


def planned(query: str, options: str = "", before: str = "") -> Physical:
    """The operators of a query over the tables a and b, into a sink of two columns."""
    sink = (
        f"CREATE TABLE s (x INT, y STRING) WITH ({_KAFKA}, 'topic' = 's', 'format' ="
        " 'changelog-json');"
    )
    tables = table("a", options) + table("b") + PROBES
    (found,) = plan(bind(f"{before} {tables} {sink} INSERT INTO s {query};"))
    assert isinstance(found.root, KafkaSink)
    return found.root


def scan_of(root: Physical, name: str = "a") -> KafkaScan:
    return next(scan for scan in of_kind(root, KafkaScan) if scan.table == name)


JOIN = "SELECT a.id, a.note FROM a JOIN b ON a.id = b.id"


def test_a_join_by_primary_key_heals_plain_columns() -> None:
    root = planned(f"{JOIN} WHERE a.id > 1")
    assert of_kind(root, Normalize) == []
    (join,) = of_kind(root, RegularJoin)
    assert join.sides[0].upsert
    scan = scan_of(root)
    assert scan.filter == "(`id` > 1)"
    assert scan.debezium is not None
    assert scan.debezium.heals


@pytest.mark.parametrize(
    ("query", "filter_", "where"),
    [
        (f"{JOIN} WHERE a.note <> ''", None, "(`note` <> '')"),
        (f"{JOIN} WHERE a.n > 1 AND a.id > 1", "(`id` > 1)", "(`n` > 1)"),
        ("SELECT a.id, a.label FROM a JOIN b ON a.id = b.id", None, None),
        ("SELECT id, note FROM a WHERE n > 1", None, "(`n` > 1)"),
    ],
)
def test_what_is_asked_of_values_is_asked_behind_the_state(
    query: str, filter_: str | None, where: str | None
) -> None:
    root = planned(query)
    (normalize,) = (n for n in of_kind(root, Normalize) if scan_of(root) in n.inputs)
    assert scan_of(root).filter == filter_
    assert normalize.output.where == where


FOLLOWED = ", 'rejoin.debezium.key-changes' = 'heal'"


def test_key_changes_are_followed_behind_a_normaliser() -> None:
    """Nothing is filtered before the state: the row may get a key that passes."""
    root = planned(
        f"{JOIN} WHERE a.id > 1", FOLLOWED + ", 'rejoin.debezium.key-change-wait' = '8 s'"
    )
    (followed,) = of_kind(root, KeyChanges)
    (rekey,) = followed.inputs
    assert isinstance(rekey, Rekey)
    assert rekey.input == of_kind(root, Normalize)[0]
    assert (rekey.input.machine.positions, rekey.input.machine.key_changes) == (True, True)
    assert (followed.machine.wait_ms, followed.timing.tick_ms) == (8_000, 2_000)
    assert followed.output == rekey.input.output
    assert followed.output.where == "(`id` > 1)"
    scan = scan_of(root)
    assert scan.filter is None
    assert scan.debezium is not None
    assert (scan.debezium.follows_keys, scan.debezium.positions) == (True, True)


def test_no_key_is_followed_where_nothing_is_healed() -> None:
    root = planned("SELECT a.id, 'x' FROM a JOIN b ON a.id = b.id WHERE a.n > 1", FOLLOWED)
    assert of_kind(root, KeyChanges) == []
    scan = scan_of(root)
    assert scan.debezium is not None
    assert not scan.debezium.follows_keys


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("SELECT a.id, 'x' FROM a JOIN b ON a.id = b.id WHERE a.n > 1", ""),
        ("SELECT a.id, CAST(a.price AS STRING) FROM a JOIN b ON a.id = b.id WHERE a.n > 1", ""),
        (f"{JOIN} WHERE a.note <> ''", ", 'rejoin.debezium.unavailable' = 'reject'"),
    ],
)
def test_nothing_is_kept_for_what_need_not_be_healed(query: str, options: str) -> None:
    root = planned(query, options)
    assert of_kind(root, Normalize) == []
    scan = scan_of(root)
    assert scan.debezium is not None
    assert not scan.debezium.heals


def test_versions_are_healed_by_the_temporal_join() -> None:
    query = "SELECT p.k, a.note FROM probes AS p JOIN a FOR SYSTEM_TIME AS OF p.at ON p.k = a.id"
    root = planned(query)
    (join,) = of_kind(root, TemporalJoin)
    assert join.sides[1].upsert
    assert of_kind(planned(query.replace("a.note", "a.label")), Normalize) != []


def test_an_upsert_sink_of_the_same_key_needs_the_rows_too() -> None:
    sink = (
        "CREATE TABLE u (id INT, note STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' ="
        " 'upsert-kafka', 'properties.bootstrap.servers' = 'localhost:9092', 'topic' = 'u',"
        " 'key.format' = 'json', 'value.format' = 'json');"
    )
    for options, kept in (("", 1), (", 'rejoin.debezium.unavailable' = 'reject'", 0)):
        insert = "INSERT INTO u SELECT id, note FROM a;"
        (only,) = plan(bind(table("a", options) + sink + insert))
        assert len(of_kind(only.root, Normalize)) == kept


@pytest.mark.parametrize(
    ("options", "before"),
    [(", 'rejoin.debezium.truncate' = 'retract'", ""), ("", _DUPLICATES)],
)
def test_truncations_and_repetitions_need_a_normaliser(options: str, before: str) -> None:
    query = "SELECT a.id, 'x' FROM a JOIN b ON a.id = b.id"
    root = planned(query, options, before)
    scan = scan_of(root)
    assert scan.debezium is not None
    assert scan.debezium.retracts_on_truncate == bool(options)
    assert scan.debezium.positions == bool(before)
    normalised = [n for n in of_kind(root, Normalize) if scan in n.inputs]
    assert [n.machine.positions for n in normalised] == [bool(before)]
    # the graves of deleted rows go by the clock
    assert [n.timing.tick_ms is not None for n in normalised] == [bool(before)]


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (", 'rejoin.debezium.truncate' = 'retract'", ""),
        (", 'rejoin.debezium.unavailable' = 'heal'", ""),
        (
            ", 'rejoin.debezium.replica-identity' = 'full',"
            " 'rejoin.debezium.unavailable' = 'reject'",
            "id",
        ),
    ],
)
def test_options_without_effect_are_refused(options: str, key: str) -> None:
    sink = f"CREATE TABLE s (x INT) WITH ({_KAFKA}, 'topic' = 's', 'format' = 'changelog-json');"
    with pytest.raises(SqlErrors, match="OPTION_CONFLICT"):
        bind("".join([table("a", options, key), sink, "INSERT INTO s SELECT id FROM a;"]))
