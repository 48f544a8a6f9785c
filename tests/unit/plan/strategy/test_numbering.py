"""Ids, topic indexes, gating: what a checkpoint holds state under, given over the whole tree."""

from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.nodes.walk import scans, stateful_nodes
from spark_jobs.plan.planner import plan_query
from spark_jobs.sql.bind.binder import bind_query
from tests.unit.plan.conftest import KAFKA, TABLES

PROBES = f"""
CREATE TABLE probes (id INT, now_ AS PROCTIME()) WITH ({KAFKA}, 'topic' = 'p;q', 'format' = 'json');
"""
VIEW = (
    "CREATE VIEW w AS SELECT a1, COUNT(*) AS n FROM a JOIN b ON a1 = b1 JOIN changes ON a2 = c1"
    " GROUP BY a1;"
)
LOOKUP = "SELECT p.id, w.n FROM probes AS p JOIN w FOR SYSTEM_TIME AS OF p.now_ ON p.id = w.a1;"


def test_operators_are_numbered_from_the_sources_on() -> None:
    sql = "SELECT a3, b3, c2, land FROM a JOIN b ON a1 = b1 JOIN changes ON a2 = c1"
    bound = bind_query(f"{TABLES}{sql} JOIN rates ON a3 = code;")
    root = plan_query(bound.query).root
    assert [n.id for n in stateful_nodes(root)] == [
        "regular-join-3",
        "regular-join-2",
        "regular-join",
    ]
    assert [(s.id, [t.index for t in s.topics]) for s in scans(root)] == [
        ("0-a", [0]),
        ("1-b", [1, 2]),
        ("1-changes", [3]),
        ("1-rates", [4]),
    ]


def test_everything_below_a_gate_is_gated_and_passes_loaded_on() -> None:
    bound = bind_query(TABLES + PROBES + VIEW + LOOKUP)
    root = plan_query(bound.query).root
    join, *others = stateful_nodes(root)
    assert (join.passes_loaded, [o.passes_loaded for o in others]) == (False, [True] * 3)
    assert [(s.table, s.gated) for s in scans(root)] == [
        ("probes", False),
        ("a", True),
        ("b", True),
        ("changes", True),
    ]
    assert join.gated_topics == (2, 3, 4, 5)
    assert "passesLoaded" not in to_json(join)
