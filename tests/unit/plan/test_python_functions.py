"""Python functions: what they take and give, where they may be called, and what is planned."""

from pathlib import Path

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.functions.computing import Computed, FunctionFailure
from spark_jobs.plan.nodes.physical import KafkaSink, QueryPlan, RegularJoin
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.unit.sql.texts import script

MODULE = """
from datetime import datetime
from decimal import Decimal

import rejoin


def twice(x: int) -> int:
    return 2 * x


def joined(*texts: str) -> str:
    return "".join(texts)


def scaled(x: float, by: float = 2.0) -> float:
    return x * by


@rejoin.udf(result_type="DECIMAL(4, 1)")
def exact(x):
    return x


@rejoin.udf(deterministic=False)
def random() -> float:
    return 4.0


@rejoin.udf(result_type="ROW<x INT>")
def row(x: int):
    return (x,)


def silent(x: int):
    return x


def odd(x: complex) -> int:
    return 1


def named(*, x: int) -> int:
    return x


broken = 1
"""
NAMES = ("twice", "joined", "scaled", "exact")
TABLES = script(
    "CREATE TABLE a (id INT, k INT, s STRING, d DOUBLE, t TIME, at TIMESTAMP_LTZ(3)) <append>;",
    "CREATE TABLE b (id INT, k INT, s STRING, PRIMARY KEY (id) NOT ENFORCED) <upsert>;",
    "CREATE TABLE c (id INT, k INT, s STRING) <append>;",
    "CREATE TABLE sink (x BIGINT) <append>;",
    "CREATE TABLE keyed (x BIGINT, y STRING, PRIMARY KEY (x) NOT ENFORCED) <upsert>;",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("job")
    (made / "functions_of_a_test.py").write_text(MODULE, encoding="utf-8")
    (made / "job.sql").write_text("", encoding="utf-8")
    return made


def planned(folder: Path, insert: str, *names: str) -> QueryPlan:
    created = [
        f"CREATE FUNCTION {name} AS 'functions_of_a_test.{name}' LANGUAGE PYTHON;"
        for name in (*NAMES, *names)
    ]
    text = TABLES + "\n".join([*created, f"INSERT INTO {insert};"])
    return plan(bind(text, str(folder / "job.sql")))[0]


def test_calls_become_columns_behind_those_of_the_join(folder: Path) -> None:
    found = planned(
        folder,
        "sink SELECT TWICE(twice(a.id) + c.id) FROM a JOIN c ON a.k = c.k"
        " WHERE joined(a.s, c.s) > 'm'",
    ).root
    assert isinstance(found, KafkaSink)
    (project,) = found.inputs
    assert [(c.target.rpartition(".")[2], c.arguments) for c in project.computed] == [
        ("twice", ("`id`",)),
        ("twice", ("(`$f0` + CAST(`id0` AS BIGINT))",)),
        ("joined", ("`s`", "`s0`")),
    ]
    assert project.select[0].expr == "`$f1`"
    assert project.where == "(`$f2` > 'm')"
    (operator,) = stateful_nodes(found)
    assert operator.output.where is None


def test_what_needs_no_python_is_filtered_below(folder: Path) -> None:
    root = planned(
        folder,
        "sink SELECT a.id FROM a JOIN c ON a.k = c.k WHERE twice(a.id) > 2 AND a.id < c.id",
    ).root
    (operator,) = stateful_nodes(root)
    assert isinstance(root, KafkaSink)
    assert root.inputs[0].where == "(`$f0` > 2L)"
    assert operator.output.where is None
    assert isinstance(operator.machine, RegularJoin)
    assert operator.machine.pair.residual == "(`id` < `id0`)"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("twice(s)", "argument 1 of twice is BIGINT, found STRING"),
        ("twice()", "twice takes 1 arguments, not 0"),
        ("scaled(d, d, d)", "scaled takes 1 to 2 arguments, not 3"),
        ("exact(t)", "exact cannot take TIME"),
        ("exact(at)", "exact cannot take TIMESTAMP_LTZ"),
        ("twise(k)", "did you mean 'twice'?"),
    ],
)
def test_wrong_arguments(folder: Path, call: str, says: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        planned(folder, "sink SELECT CAST(<call> AS BIGINT) FROM a".replace("<call>", call))
    assert says.lower() in caught.value.render().lower()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("random", "FUNCTION_NOT_DETERMINISTIC"),
        ("row", "FUNCTION_TYPE"),
        ("silent", "FUNCTION_TYPE"),
        ("odd", "FUNCTION_TYPE"),
        ("named", "FUNCTION_TYPE"),
        ("broken", "FUNCTION_NOT_FOUND"),
        ("missing", "FUNCTION_NOT_FOUND"),
        ("twice", "TABLE_TWICE"),
    ],
)
def test_functions_that_cannot_be_used(folder: Path, name: str, code: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        planned(folder, "sink SELECT id FROM a", name)
    assert caught.value.codes == (code,)


@pytest.mark.parametrize(
    ("insert", "says"),
    [
        ("sink SELECT a.id FROM a JOIN b ON twice(a.k) = b.k", "in the condition of a join"),
        ("sink SELECT twice(k) FROM a GROUP BY twice(k)", "in GROUP BY"),
        ("sink SELECT SUM(twice(k)) FROM a", "in GROUP BY, DISTINCT or an aggregate function"),
        (
            "sink SELECT x.y FROM (SELECT k, twice(id) AS y FROM a) AS x JOIN b ON x.k = b.k",
            "below a join",
        ),
        ("keyed SELECT twice(a.id), b.s FROM a JOIN b ON a.k = b.id", "materialiser of keyed"),
        ("keyed SELECT twice(id), s FROM b", "materialiser of keyed"),
        (
            "keyed SELECT k, joined(s) FROM a UNION ALL SELECT k, s FROM b",
            "materialiser of keyed",
        ),
        ("keyed SELECT twice(id), s FROM a", "of the sink's key"),
    ],
)
def test_places_without_python(folder: Path, insert: str, says: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        planned(folder, insert)
    assert "FUNCTION_PLACE" in caught.value.codes
    assert says in caught.value.render()
    assert ":0:" not in caught.value.render()


@pytest.mark.parametrize("language", ["", "LANGUAGE JAVA", "LANGUAGE SCALA USING JAR 'x.jar'"])
def test_functions_of_the_jvm_are_refused(language: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        bind(f"CREATE FUNCTION f AS 'x.Y' {language};")
    assert "UNSUPPORTED_SYNTAX" in caught.value.codes
    assert "LANGUAGE PYTHON" in caught.value.render()


@pytest.mark.parametrize(
    ("given", "result", "expected"),
    [
        (7, ("BIGINT",), 7),
        (True, ("BIGINT",), "is a bool, not BIGINT"),
        (1 << 31, ("INT",), "out of the range of INT"),
        (3, ("DOUBLE",), 3.0),
        ("1", ("DOUBLE",), "is a str, not DOUBLE"),
        (None, ("STRING",), None),
        (["a", None], ("ARRAY", ("STRING",)), ["a", None]),
    ],
)
def test_a_result_has_the_declared_type(
    given: object, result: tuple[object, ...], expected: object
) -> None:
    call = Computed("m.f", lambda: given, result)
    assert call(False) is None
    if isinstance(expected, str):
        with pytest.raises(FunctionFailure, match=expected):
            call(True)
    else:
        assert call(True) == expected


def test_a_failure_says_what_it_was_given() -> None:
    call = Computed("m.f", lambda x: 1 // x, ("INT",))
    with pytest.raises(FunctionFailure, match=r"m\.f\(0\) raised ZeroDivisionError"):
        call(True, 0)
