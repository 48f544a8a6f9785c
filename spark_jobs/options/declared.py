"""Classes whose fields are options: the tables of their names, and how texts become objects.

Each field has its option's name, kind, default and help (kinds.py). The tables are what the docs
show and the binder checks; the objects are what everybody else reads, instead of names.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields
from typing import Any, Literal, TypeVar, get_args, get_origin

from spark_jobs.options.kinds import Option, one_of

T = TypeVar("T")


def group(kind: Callable[[], T]) -> T:
    """A field that holds the options of another such class."""
    return field(default_factory=kind, metadata={"group": kind})


def table_of(kind: type) -> dict[str, Option]:
    """The options of such a class by name, in the order of its fields."""
    found: dict[str, Option] = {}
    for each in fields(kind):
        if "group" in each.metadata:
            found |= table_of(each.metadata["group"])
        elif "option" in each.metadata:
            found[each.metadata["name"]] = _option(each)
    return found


def read_options(kind: type[T], given: Mapping[str, str]) -> T:
    """What these texts mean. A text that is no value of its option, or a reference, is left out.

    >>> from spark_jobs.options.formats import AvroOptions
    >>> read_options(AvroOptions, {"timestamp_mapping.legacy": "false"})
    AvroOptions(encoding='binary', legacy_timestamps=False)
    """
    values: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]
        if "group" in each.metadata:
            values[each.name] = read_options(each.metadata["group"], given)
        elif (text := given.get(each.metadata.get("name", ""))) is not None:
            value = _option(each).read(text)
            values |= {} if value is None else {each.name: value}
    return kind(**values)


def _option(each: Field[Any]) -> Option:
    """A field's option; a choice that names no values has those of the field's Literal type."""
    found: Option = each.metadata["option"]
    kinds = (each.type, *get_args(each.type))  # the type may be `Literal[...] | None`
    values = [text for kind in kinds if get_origin(kind) is Literal for text in get_args(kind)]
    return found if found.expected else one_of(found.help, values, found.default)
