"""Binds calls of JSON functions: paths, what they give, and what stands in for nothing."""

import re
from collections.abc import Callable

from sqlglot import exp

from spark_jobs.sql.bind.casts import cast
from spark_jobs.sql.parse.positions import Complaint
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.coercion import can_cast
from spark_jobs.sql.types.data_types import DataType, with_nullable
from spark_jobs.sql.types.expr import Call, Expr, Literal

_RETURNING = ("STRING", "BOOLEAN", "INT", "DOUBLE")
_PATH = re.compile(r"\s*(?:(?:lax|strict)\s+)?\$(.*)", re.IGNORECASE | re.DOTALL)
_STEP = re.compile(
    r"""\.\.|\.?\s*\[\s*(?:\*|'[^']*'(?:\s*,\s*'[^']*')*|"[^"]*"(?:\s*,\s*"[^"]*")*"""
    r"""|-?\d+(?:\s*,\s*-?\d+)*|-?\d*\s*:\s*-?\d*)\s*\]|\.\*|\.?[^\s.\[\]()?*'"]+"""
)
_DEFAULTS = {"JSON_VALUE": "NULL", "JSON_QUERY": "NULL", "JSON_EXISTS": "FALSE"}


class JsonBinder:
    """Binds one call; `argument` binds its arguments."""

    def __init__(self, argument: Callable[[exp.Expr], Expr], at: Complaint) -> None:
        self.argument = argument
        self.at = at

    def bind(self, node: exp.Expr) -> Expr:
        name = str(node.this)
        if name in ("JSON_OBJECT", "JSON_ARRAY"):
            return self._constructor(name, node)
        return self._at_path(name, node)

    def _at_path(self, name: str, node: exp.Expr) -> Expr:
        """The call with its path, and for ON EMPTY and ON ERROR a word and a default each."""
        if len(node.expressions) != 2:
            count = len(node.expressions)
            self.at.fail("WRONG_ARGUMENT", f"{name} takes a text and a path, not {count}", node)
        json, path = (self.argument(e) for e in node.expressions)
        for arg, where in zip((json, path), node.expressions, strict=True):
            if arg.type.name not in ("STRING", "NULL"):
                self.at.fail("WRONG_ARGUMENT", f"{name} takes STRING, not {arg.type.sql()}", where)
        self._check_path(path, node.expressions[1])
        result = self._result(name, node)
        words: list[Expr] = []
        for case in ("empty", "error"):
            default = node.args.get(f"{case}_default")
            value = Literal(None, data_types.NULL) if default is None else self.argument(default)
            if not can_cast(value.type, result):
                problem = f"DEFAULT is {value.type.sql()}, not {result.sql()}"
                self.at.fail("WRONG_ARGUMENT", problem, default or node)
            words += [_word(node.args.get(f"on_{case}") or _DEFAULTS[name]), cast(value, result)]
        wrapper = _word(node.args.get("wrapper") or "WITHOUT")
        return Call(name, (json, path, wrapper, *words), result)

    def _result(self, name: str, node: exp.Expr) -> DataType:
        if name == "JSON_EXISTS":
            return data_types.BOOLEAN
        written = node.args.get("returning")
        if written is None:
            return data_types.STRING
        allowed = _RETURNING if name == "JSON_VALUE" else ("STRING",)
        if written.type.name not in allowed:
            hint = f"use one of {', '.join(allowed)}, and CAST its result"
            self.at.refuse(node, f"{name} RETURNING {written.type.sql()}", hint)
        return with_nullable(written.type, True)

    def _check_path(self, path: Expr, node: exp.Expr) -> None:
        text = path.value if isinstance(path, Literal) else None
        if not isinstance(text, str):
            self.at.refuse(node, "a JSON path that is no constant", "write the path as a text")
        found = _PATH.fullmatch(text)
        if found is None:
            self.at.fail("WRONG_ARGUMENT", f"'{text}' is no JSON path", node, "it begins with $")
        place, steps = 0, found[1].rstrip()
        while place < len(steps):
            step = _STEP.match(steps, place)
            if step is None:
                what = f"'{steps[place:]}' in a JSON path"
                self.at.refuse(node, what, "paths have names, indexes, slices, * and ..")
            place = step.end()

    def _constructor(self, name: str, node: exp.Expr) -> Expr:
        values = [self.argument(e) for e in node.expressions]
        on_null = node.args.get("on_null") or ("NULL" if name == "JSON_OBJECT" else "ABSENT")
        if name == "JSON_OBJECT":
            self._check_keys(values[::2], node)
        type_ = with_nullable(data_types.STRING, False)
        return Call(name, (_word(on_null), *values), type_)

    def _check_keys(self, keys: list[Expr], node: exp.Expr) -> None:
        names = [key.value if isinstance(key, Literal) else None for key in keys]
        for i, name in enumerate(names):
            where = node.expressions[2 * i]
            if not isinstance(name, str):
                self.at.fail("WRONG_ARGUMENT", "a key of JSON_OBJECT must be a constant", where)
            if name in names[:i]:
                self.at.fail("WRONG_ARGUMENT", f"the key '{name}' stands there twice", where)


def _word(text: str) -> Literal:
    return Literal(text, with_nullable(data_types.STRING, False))
