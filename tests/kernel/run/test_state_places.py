"""Where the tasks of an operator run once executors have come or gone."""

from typing import Any

import pytest

from tests.harness.gateway import jvm


def moves(at: str, executors: str) -> dict[int, str]:
    """Executors are letters, `-` is one that is gone."""
    java: Any = jvm()
    conversions = java.scala.jdk.javaapi.CollectionConverters

    def seq(letters: str) -> Any:
        return conversions.asScala(list(letters)).toSeq()

    found = java.org.apache.spark.sql.rejoin.run.StatePlaces.moves(seq(at), seq(executors))
    return {move._1(): move._2() for move in conversions.asJava(found)}


@pytest.mark.parametrize(
    ("at", "executors", "moved"),
    [
        ("AB", "AB", {}),
        ("AA", "AB", {1: "B"}),  # the second executor came after the first epoch
        ("AA", "A", {}),
        ("A-", "AB", {}),  # Spark finds a place for what has none
        ("ABABA", "ABC", {4: "C"}),
        ("AAAAAA", "ABC", {5: "B", 4: "C", 3: "B", 2: "C"}),
        ("AAAB", "AB", {2: "B"}),
        ("--", "", {}),
    ],
)
def test_the_fewest_tasks_move_until_all_executors_have_as_many(
    at: str, executors: str, moved: dict[int, str]
) -> None:
    assert moves(at, executors) == moved
