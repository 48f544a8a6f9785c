"""Expressions of several operators group as in Flink; its own answers are the expected ones."""

from pathlib import Path

import pytest
from sqlglot import exp

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Filter, Project
from spark_jobs.sql.parse.parser import parse
from spark_jobs.sql.parse.source_text import SourceText
from spark_jobs.sql.parse.statements import Query
from tests.unit.sql.shapes import text
from tests.unit.sql.texts import script

ANSWERS = Path(__file__).parents[3] / "fixtures" / "flink" / "operators.txt"
NAMES: dict[type[exp.Expr], str] = {
    exp.Or: "OR",
    exp.And: "AND",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS_NOT_DISTINCT_FROM",
    exp.NullSafeNEQ: "IS_DISTINCT_FROM",
    exp.Like: "LIKE",
    exp.SimilarTo: "SIMILAR_TO",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.Not: "NOT",
    exp.Neg: "-",
}
TABLE = "CREATE TABLE a (id INT, k INT, v INT, f BOOLEAN, g BOOLEAN, s STRING) <append>;"


def tree(node: exp.Expr) -> str:
    match node:
        case exp.Escape():
            return f"{tree(node.this)[:-1]} {tree(node.expression)})"
        case exp.Is():
            return f"(IS_{node.expression.name} {tree(node.this)})"
        case exp.In():
            return f"(IN {tree(node.this)} [{', '.join(map(tree, node.expressions))}])"
        case exp.Between():
            parts = (node.this, node.args["low"], node.args["high"])
            return f"(BETWEEN {' '.join(map(tree, parts))})"
        case exp.Unary() if type(node) in NAMES:
            return f"({NAMES[type(node)]} {tree(node.this)})"
        case exp.Binary():
            return f"({NAMES[type(node)]} {tree(node.this)} {tree(node.expression)})"
        case _:
            return node.name


def read(expression: str) -> str:
    source = SourceText(script("SELECT 1 FROM t WHERE", expression))
    statements = parse(source)
    if source.problems:
        assert {p.code for p in source.problems} == {"SQL_SYNTAX"}
        return "refused"
    (query,) = statements
    assert isinstance(query, Query)
    return tree(query.query.args["where"].this)


def test_operators_take_the_operands_that_flink_gives_them() -> None:
    answers = dict(line.split(" -> ") for line in ANSWERS.read_text("utf-8").splitlines())
    found = {expression: read(expression) for expression in answers}
    assert found == answers
    assert len(answers) == 1520


def where(condition: str) -> str:
    found = bind_query(script(TABLE, "SELECT id FROM a WHERE", condition)).query
    assert isinstance(found, Project)
    assert isinstance(found.input, Filter)
    return text(found.input.condition)


@pytest.mark.parametrize(
    ("condition", "meaning"),
    [
        ("f = g IS NOT TRUE", "IS NOT TRUE(=($3, $4))"),
        ("k = v IS NULL", "IS NULL(=($1, $2))"),
        ("k = v IS UNKNOWN", "IS NULL(=($1, $2))"),
        ("k = v IS NOT UNKNOWN", "IS NOT NULL(=($1, $2))"),
        ("id > 0 IS DISTINCT FROM f", "IS DISTINCT FROM(>($0, 0), $3)"),
        ("f = k > v", None),
        ("f IS NULL = g IS NULL", "IS NULL(=(IS NULL($3), $4))"),
        ("NOT k = v IS TRUE", "IS NOT TRUE(=($1, $2))"),
        ("k + v * id = 1 AND f OR g", "OR(AND(=(+($1, *($2, $0)), 1), $3), $4)"),
        ("s LIKE 'a' || 'b' IS TRUE", "IS TRUE(LIKE($5, ||('a', 'b')))"),
        ("id BETWEEN k AND v = f", "=(AND(>=($0, $1), <=($0, $2)), $3)"),
    ],
)
def test_conditions_mean_what_they_mean_in_flink(condition: str, meaning: str | None) -> None:
    if meaning is None:
        with pytest.raises(SqlErrors, match="INCOMPATIBLE_TYPES"):
            where(condition)
    else:
        assert where(condition) == meaning


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("s IN ('a') || s", "put IN (...) in parentheses"),
        ("s IN ()", "the list after IN is empty"),
        ("s IN 'a'", "expected a list in parentheses after IN"),
        ("k BETWEEN 1", "BETWEEN needs AND and a second bound"),
        ("s LIKE 'a' ESCAPE -1", "expected the character after ESCAPE"),
        ("s ESCAPE 'a'", "ESCAPE belongs to no LIKE"),
        ("f IS 'NULL'", "expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS"),
        ("k = ", "incomplete"),
        ("k + NOT", "incomplete"),
        ("k = * v", "unexpected 'v'"),
    ],
)
def test_what_is_no_expression(condition: str, message: str) -> None:
    with pytest.raises(SqlErrors) as caught:
        where(condition)
    assert message in str(caught.value)
