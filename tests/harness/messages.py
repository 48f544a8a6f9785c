"""Nodes that tests write by hand, as the planner's own dataclasses write them to the kernel.

A field that the planner does not have is refused here, one that it has is required or filled in:
what a test sends is what the planner would send.
"""

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from spark_jobs.plan.nodes import physical
from spark_jobs.plan.nodes.parts import ReadFrom
from spark_jobs.plan.nodes.physical import Physical
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.sql.types.data_types import DataType

_KINDS: dict[str, type[Any]] = {
    node.kind: node
    for node in vars(physical).values()
    if isinstance(node, type) and "kind" in vars(node)
}
# what no machine and no reader looks at
_NEUTRAL: dict[str, Any] = {
    "id": "operator",
    "inputs": (),
    "changelog_mode": "",
    "unique_keys": (),
    "startup": ReadFrom("earliest-offset"),
    "bounded": ReadFrom("unbounded"),
    "sql_type": None,
    "properties": {},
}


class RawType(DataType):
    """A type given as Spark's JSON."""

    def __init__(self, json_: Any) -> None:
        super().__init__("RAW")
        object.__setattr__(self, "json", json_)

    def spark_json(self) -> Any:
        return vars(self)["json"]


def planned(node: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON that the planner would write for a node given in its field names."""
    return dict(to_json(read_node(node)))


def read_node(node: Mapping[str, Any]) -> Physical:
    given = {name: value for name, value in node.items() if name != "kind"}
    found: Physical = _read(_KINDS[node["kind"]], given)
    return found


def _read(type_: type[Any], given: Mapping[str, Any]) -> Any:
    names = {_json_name(field): field for field in fields(type_)}
    if unknown := given.keys() - names.keys():
        raise ValueError(f"{type_.__name__} has no {', '.join(sorted(unknown))}")
    hints = get_type_hints(type_)
    return type_(**{
        field.name: _value(hints[field.name], given[name]) if name in given else _default(field)
        for name, field in names.items()
    })  # fmt: skip


def _json_name(field: Field[Any]) -> str:
    return str(field.metadata.get("json") or re.sub(r"_(\w)", lambda m: m[1].upper(), field.name))


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.name not in _NEUTRAL:
        raise ValueError(f"{field.name} is missing")
    return _NEUTRAL[field.name]


def _value(hint: Any, value: Any) -> Any:
    types = [hint, *get_args(hint)]
    if isinstance(value, list | tuple):
        return tuple(_value(get_args(hint)[0] if get_args(hint) else Any, item) for item in value)
    if not isinstance(value, Mapping | str) or value is None:
        return value
    if DataType in types:
        return RawType(value)
    if isinstance(value, str):
        return value
    if "kind" in value and value["kind"] in _KINDS:
        return read_node(value)
    nested = next((t for t in types if is_dataclass(t) and isinstance(t, type)), None)
    return value if nested is None else _read(nested, value)
