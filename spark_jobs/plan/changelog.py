"""Which kinds of change a node may produce, as Flink's changelog mode inference says."""

from typing import assert_never

from spark_jobs.plan.logical import Filter, Join, Logical, Project, Scan, Sink
from spark_jobs.sql.catalog import ChangelogMode, Table

Kinds = frozenset[str]

INSERT: Kinds = frozenset({"I"})
ALL: Kinds = frozenset({"I", "U", "D"})


def kinds(node: Logical) -> Kinds:
    """Insertions, updates, deletions: what of these the node may produce."""
    match node:
        case Scan(table=table):
            return INSERT if table.changelog == "append" else ALL
        case Filter(input=inner) | Project(input=inner) | Sink(input=inner):
            return kinds(inner)
        case Join(as_of=None, kind="inner" | "semi"):
            return kinds(node.left) | kinds(node.right)
        case Join(as_of=None):
            return ALL
        case Join():
            return kinds(node.left)
        case _:
            assert_never(node)


def changelog_of(node: Logical) -> str | None:
    """The changelog mode of the one table below; None where there are several."""
    match node:
        case Scan(table=table):
            return table.changelog
        case Join():
            return None
        case Filter(input=inner) | Project(input=inner) | Sink(input=inner):
            return changelog_of(inner)
        case _:
            assert_never(node)


def mode_text(of: Kinds, update_before: bool) -> str:
    """Flink's text of a changelog mode.

    >>> mode_text(ALL, update_before=False)
    'I,UA,D'
    """
    updates = (["UB"] if update_before else []) + ["UA"]
    return ",".join([*("I" for _ in of & {"I"}), *(updates if "U" in of else []), *(of & {"D"})])


def sink_mode(table: Table) -> ChangelogMode:
    """What a table takes when it is written: append, upsert or retract."""
    if table.connector == "upsert-kafka":
        return "upsert"
    value_format = table.value_format
    if value_format is not None and value_format.name in ("debezium-json", "changelog-json"):
        return "retract"
    return "append"


def why_updating(node: Logical) -> str:
    """The first reason why the node's rows change, for error messages."""
    match node:
        case Scan(table=table):
            return f"table {table.name} has changelog mode {table.changelog}"
        case Filter(input=inner) | Project(input=inner) | Sink(input=inner):
            return why_updating(inner)
        case Join(as_of=None, kind=kind) if kind not in ("inner", "semi"):
            return f"a {kind} join retracts rows that it padded with NULL"
        case Join(left=left, right=right):
            return why_updating(left if kinds(left) != INSERT else right)
        case _:
            assert_never(node)
