"""Nodes that tests write by hand, as the planner's own dataclasses write them to the kernel.

A field that the planner does not have is refused here, one that it has is required or filled in:
what a test sends is what the planner would send.
"""

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from spark_jobs.plan.nodes import physical
from spark_jobs.plan.nodes.parts import INLINE, ReadFrom
from spark_jobs.plan.nodes.physical import Machine, Physical, Stateful
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.sql.types.data_types import DataType

_KINDS: dict[str, type[Any]] = {
    vars(node)["kind"]: node
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
    type_ = _KINDS[node["kind"]]
    given = {name: value for name, value in node.items() if name != "kind"}
    is_machine = type_ in get_args(Machine)
    found: Physical = _read(Stateful if is_machine else type_, given, type_)
    if given:
        raise ValueError(f"{type_.__name__} has no {', '.join(sorted(given))}")
    return found


def _read(type_: type[Any], given: dict[str, Any], machine: type[Any]) -> Any:
    """Takes the fields of a dataclass out of what is given; `machine`: that of an operator."""
    hints = get_type_hints(type_)
    values = {}
    for field in fields(type_):
        name, hint = _json_name(field), hints[field.name]
        if field.metadata == INLINE:
            values[field.name] = _read(machine if hint == Machine else hint, given, machine)
        elif name in given:
            values[field.name] = _value(hint, given.pop(name))
        else:
            values[field.name] = _default(field)
    return type_(**values)


def _json_name(field: Field[Any]) -> str:
    camel = re.sub(r"_(\w)", lambda m: m[1].upper(), field.name)
    return str(field.metadata.get("json") or camel)


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
    if not isinstance(value, Mapping | str):
        return value
    if DataType in types:
        return RawType(value)
    if isinstance(value, str):
        return value
    if value.get("kind") in _KINDS:
        return read_node(value)
    nested = next((t for t in types if is_dataclass(t) and isinstance(t, type)), None)
    if nested is None:
        return value
    rest = dict(value)
    found = _read(nested, rest, nested)
    if rest:
        raise ValueError(f"{nested.__name__} has no {', '.join(sorted(rest))}")
    return found
