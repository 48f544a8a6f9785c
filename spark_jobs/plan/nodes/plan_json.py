"""Physical nodes as the JSON that the kernel reads: field names in camelCase, types as Spark's."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeAlias

from spark_jobs.options.formats import Format
from spark_jobs.plan.nodes.parts import INLINE, PLANNER_ONLY, UNLESS_DEFAULT
from spark_jobs.plan.nodes.physical import Machine, Physical
from spark_jobs.sql.types.data_types import DataType

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def to_json(node: Physical | Machine) -> dict[str, Json]:
    """The node and its inputs as the kernel reads them."""
    found = _json(node)
    if not isinstance(found, dict):
        raise TypeError(f"{type(node).__name__} is no plan node")
    return found


def _json(value: object) -> Json:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case DataType():
            return _json(value.spark_json())
        case Format(name=name, texts=texts):
            return {"name": name, "options": dict(texts)}
        case Mapping():
            return {str(k): _json(v) for k, v in value.items()}
        case tuple() | list():
            return [_json(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            kind = getattr(value, "kind", None)
            given = sorted(_fields(value), key=lambda field: field[0])
            own = {name: _json(held) for _, name, held in given}
            return own if kind is None else {"kind": kind} | own
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a plan")


def _fields(value: Any) -> Iterator[tuple[bool, str, object]]:
    """Name and value of each field; first goes whether it has a default: those stand last."""
    for field in fields(value):
        held = getattr(value, field.name)
        if field.metadata == INLINE:
            yield from _fields(held)
        elif field.metadata == UNLESS_DEFAULT:
            if held != field.default:
                yield True, _camel(field.name), held
        elif field.metadata != PLANNER_ONLY:
            name = field.metadata.get("json") or _camel(field.name)
            yield field.default is not MISSING, name, held


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
