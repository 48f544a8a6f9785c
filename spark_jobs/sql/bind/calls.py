"""Binds function calls: which function it is, its arguments, the casts among them, its type."""

from collections.abc import Callable, Sequence
from typing import NoReturn

from sqlglot import exp

from spark_jobs.sql.bind.casts import arithmetic, cast, unified
from spark_jobs.sql.bind.python_functions import bind_python_call
from spark_jobs.sql.parse.dialect import CONSTRUCTORS
from spark_jobs.sql.parse.positions import Complaint, start_of
from spark_jobs.sql.parse.source_text import nearest
from spark_jobs.sql.types import data_types, functions
from spark_jobs.sql.types.data_types import DataType, RowField, with_nullable
from spark_jobs.sql.types.expr import Call, Expr, Literal
from spark_jobs.sql.types.functions import FUNCTIONS, FunctionError, Signature
from spark_jobs.sql.types.python_function import PythonFunction

Compare = Callable[[str, Expr, Expr, exp.Expr], Expr]


class CallBinder:
    """Binds one call; `argument` binds its arguments, `compare` makes a typed comparison."""

    def __init__(
        self, argument: Callable[[exp.Expr], Expr], compare: Compare, at: Complaint
    ) -> None:
        self.argument = argument
        self.compare = compare
        self.at = at
        self.functions = at.source.functions

    def bind(self, node: exp.Expr) -> Expr:
        """The typed call."""
        name = node.name.upper()
        if name in self.functions:
            return self._python(self.functions[name], node)
        if name in functions.EXTRACTS:
            return self._extract(name, node)
        if name in CONSTRUCTORS.values():
            return self._constructor(name[:-2], node)
        name = functions.SYNONYMS.get(name, name)
        signature = FUNCTIONS.get(name)
        if name == "CURRENT_DATABASE" and not node.expressions:
            return Literal("default_database", with_nullable(data_types.STRING, False))
        if name == "UNIX_TIMESTAMP" and not node.expressions:
            self._refuse_unrepeatable("UNIX_TIMESTAMP()", node)
        if signature is None:
            self._refuse_function(name, node)
        args = [
            self._unit(a) if signature.kinds[:1] == ("unit",) and i == 0 else self.argument(a)
            for i, a in enumerate(node.expressions)
        ]
        return self._call(signature, args, node)

    def _python(self, function: PythonFunction, node: exp.Expr) -> Expr:
        args = [self.argument(each) for each in node.expressions]
        try:
            return bind_python_call(function, args, self.at.source.position(start_of(node)))
        except FunctionError as error:
            at = node if error.argument is None else node.expressions[error.argument]
            self.at.fail("WRONG_ARGUMENT", error.message, at if start_of(at) else node)

    def _extract(self, name: str, node: exp.Expr) -> Expr:
        """YEAR(x) and its like."""
        if len(node.expressions) != 1:
            message = f"{name} takes 1 argument, not {len(node.expressions)}"
            self.at.fail("WRONG_ARGUMENT", message, node)
        unit = Literal(functions.EXTRACTS[name], with_nullable(data_types.STRING, False))
        return self._call(FUNCTIONS["EXTRACT"], (unit, self.argument(node.expressions[0])), node)

    def _unit(self, node: exp.Expr) -> Expr:
        """The unit in TIMESTAMPADD(SECOND, ...), which the parser takes for a column."""
        name = node.name if isinstance(node, (exp.Column, exp.Literal)) else ""
        return Literal(name.upper(), with_nullable(data_types.STRING, False))

    def _refuse_function(self, name: str, node: exp.Expr) -> NoReturn:
        if name in functions.GROUP_FUNCTIONS:
            self.at.fail(
                "MISPLACED_AGGREGATE",
                f"the aggregate function {name} cannot stand here",
                node,
                "write it in a select list or in HAVING, not inside another aggregate function",
            )
        if name in functions.AGGREGATES:
            others = ", ".join(functions.GROUP_FUNCTIONS)
            self.at.refuse(node, f"the aggregate function {name}", f"use one of {others}")
        if name in functions.WINDOWS:
            self.at.refuse(node, f"the window function {name}")
        if name in functions.UNREPEATABLE:
            self._refuse_unrepeatable(name, node)
        if name in functions.BITMAPS:
            self.at.refuse(node, f"the bitmap function {name}", "keep the values in an ARRAY")
        if name in functions.UNTYPED:
            hint = "JSON_VALUE and JSON_QUERY read JSON from a STRING"
            self.at.refuse(node, f"the function {name}", hint if "JSON" in name else None)
        known = (*FUNCTIONS, *functions.SYNONYMS, *functions.EXTRACTS, *self.functions)
        self.at.fail("UNKNOWN_FUNCTION", f"no function {name}", node, nearest(name, known))

    def _refuse_unrepeatable(self, name: str, node: exp.Expr) -> NoReturn:
        self.at.refuse(
            node,
            f"{name}, whose value would differ when a failed batch is computed again,",
            "use a time of the record: METADATA FROM 'timestamp'",
        )

    def _call(self, signature: Signature, args: Sequence[Expr], node: exp.Expr) -> Expr:
        try:
            signature.check_count(len(args))
            for index, arg in enumerate(args):
                signature.check(index, arg, args[0].type)
            same = signature.same(args)
            args = [self._as_kind(signature.kind(i), a, same, args[0]) for i, a in enumerate(args)]
            return self._finished(signature, tuple(args), node)
        except FunctionError as error:
            # YEAR(x) has no unit among its arguments
            missing = len(args) - len(node.expressions)
            at = node if error.argument is None else node.expressions[error.argument - missing]
            self.at.fail("WRONG_ARGUMENT", error.message, at if start_of(at) else node)

    def _as_kind(self, kind: str, arg: Expr, same: DataType | None, first: Expr) -> Expr:
        """An argument as the common type of its kind, or as the element of the array before it."""
        if same is not None and kind.startswith("same"):
            return cast(arg, same)
        element = first.type.element
        return cast(arg, element) if kind == "element" and element is not None else arg

    def _finished(self, signature: Signature, args: tuple[Expr, ...], node: exp.Expr) -> Expr:
        match signature.name:
            case "MOD":
                found = arithmetic("%", args[0], args[1])
                return found if found is not None else Call("MOD", args, args[1].type)
            case "NULLIF":
                same = self.compare("=", args[0], args[1], node)
                nothing = Literal(None, with_nullable(args[0].type, True))
                return Call("CASE", (same, nothing, args[0]), with_nullable(args[0].type, True))
            case "FLOOR" | "CEIL" as name if _is_time(args[0]) != (len(args) > 1):
                raise FunctionError(
                    f"{name} of a date or time, and of nothing else, has TO unit", 0
                )
            case "IFNULL":
                return Call("COALESCE", args, signature.result_type(args))
            case _:
                return Call(signature.name, args, signature.result_type(args))

    def _constructor(self, name: str, node: exp.Expr) -> Expr:
        items = tuple(self.argument(e) for e in node.expressions)
        if name == "ROW":
            fields = tuple(RowField(f"EXPR${i}", e.type) for i, e in enumerate(items))
            return Call("ROW", items, DataType("ROW", nullable=False, fields=fields))
        values = unified(items if name == "ARRAY" else items[1::2])
        keys = unified(items[::2])
        uneven = name == "MAP" and (keys is None or len(items) % 2 == 1)
        if not values or uneven:
            self.at.fail(
                "WRONG_ARGUMENT",
                f"the values of {name}[...] do not fit together",
                node,
            )
        element = values[0].type
        if name == "ARRAY":
            return Call("ARRAY", values, DataType("ARRAY", nullable=False, element=element))
        pairs = tuple(e for pair in zip(keys or (), values, strict=True) for e in pair)
        type_ = DataType("MAP", nullable=False, key=pairs[0].type, element=element)
        return Call("MAP", pairs, type_)


def _is_time(arg: Expr) -> bool:
    return arg.type.name in (*data_types.TIMESTAMPS, "DATE")
