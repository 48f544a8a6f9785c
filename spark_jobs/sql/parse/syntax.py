"""Nodes of the syntax tree for Flink SQL that sqlglot does not have."""

from typing import ClassVar

from sqlglot import exp


class TypedLiteral(exp.Expression):
    """`TIMESTAMP '2020-08-15 00:01:00'`: kind and text."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class IntervalLiteral(exp.Expression):
    """`INTERVAL '1:30' HOUR TO MINUTE`: the expression or text, and the units."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "unit": True,
        "to": False,
        "negative": False,
    }


class TypedCast(exp.Expression):
    """CAST and TRY_CAST; `to` holds our own WrittenType."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "to": True, "op": True}


class TableFunction(exp.Expression):
    """`LATERAL TABLE (name(arguments)) AS alias (columns)`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False, "alias": False}


class NamedArgument(exp.Expression):
    """`name => value`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class TableArgument(exp.Expression):
    """`TABLE name` as an argument."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class HintText(exp.Expression):
    """A hint as it was written, with its `/*+` and `*/`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class JsonCall(exp.Expression):
    """A call of a JSON function: its name, its arguments and what its clauses say."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": False,
        "returning": False,
        "wrapper": False,
        "on_null": False,
        "on_empty": False,
        "empty_default": False,
        "on_error": False,
        "error_default": False,
    }
