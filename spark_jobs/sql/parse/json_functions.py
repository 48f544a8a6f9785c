"""Reads the calls of JSON functions, which have clauses among their arguments."""

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from spark_jobs.sql.parse.operators import OperatorParser
from spark_jobs.sql.parse.syntax import JsonCall

_WRAPPERS = {
    ("WITHOUT", "ARRAY", "WRAPPER"): "WITHOUT",
    ("WITHOUT", "WRAPPER"): "WITHOUT",
    ("WITH", "CONDITIONAL", "ARRAY", "WRAPPER"): "CONDITIONAL",
    ("WITH", "CONDITIONAL", "WRAPPER"): "CONDITIONAL",
    ("WITH", "UNCONDITIONAL", "ARRAY", "WRAPPER"): "UNCONDITIONAL",
    ("WITH", "UNCONDITIONAL", "WRAPPER"): "UNCONDITIONAL",
    ("WITH", "ARRAY", "WRAPPER"): "UNCONDITIONAL",
    ("WITH", "WRAPPER"): "UNCONDITIONAL",
}
_BEHAVIOURS = (
    ("EMPTY", "ARRAY"),
    ("EMPTY", "OBJECT"),
    ("NULL",),
    ("ERROR",),
    ("TRUE",),
    ("FALSE",),
    ("UNKNOWN",),
)


class JsonParser(OperatorParser):
    """JSON_VALUE, JSON_QUERY, JSON_EXISTS, JSON_OBJECT and JSON_ARRAY."""

    def _json_path_call(self, name: str) -> exp.Expr:
        found = JsonCall(this=name, expressions=[self._json_item()])
        if self._match(TokenType.COMMA):
            found.append("expressions", self._json_item())
        if self._match_text_seq("RETURNING"):
            found.set("returning", self.parse_data_type())  # type: ignore[attr-defined]
        for words, wrapper in _WRAPPERS.items():
            if self._match_text_seq(*words):
                found.set("wrapper", wrapper)
                break
        while not self._match(TokenType.R_PAREN, advance=False):
            self._json_behaviour(found)
        return found

    def _json_behaviour(self, call: exp.Expr) -> None:
        """`NULL ON EMPTY`, `DEFAULT 1 ON ERROR` and their like."""
        default = self._json_item() if self._match_text_seq("DEFAULT") else None
        word = "DEFAULT" if default is not None else self._json_word()
        if not self._match_text_seq("ON") or not self._match_texts(("EMPTY", "ERROR")):
            self.raise_error("expected ON EMPTY or ON ERROR")
        case = self._prev.text.lower()
        call.set(f"on_{case}", word)
        call.set(f"{case}_default", default)

    def _json_word(self) -> str:
        for words in _BEHAVIOURS:
            if self._match_text_seq(*words):
                return " ".join(words)
        self.raise_error("expected NULL, ERROR, DEFAULT, ON EMPTY or ON ERROR")
        raise AssertionError

    def _json_list(self, name: str) -> exp.Expr:
        """The values of a constructor, or the keys and values of an object."""
        found = JsonCall(this=name, expressions=[])
        while not self._match(TokenType.R_PAREN, advance=False):
            if self._on_null(found):
                break
            if found.expressions:
                self._match(TokenType.COMMA)
            if name == "JSON_OBJECT":
                self._match_text_seq("KEY")
                found.append("expressions", self._json_item())
                if not self._match_text_seq("VALUE") and not self._match(TokenType.COLON):
                    self.raise_error("expected VALUE between a key and its value")
            found.append("expressions", self._json_item())
        return found

    def _on_null(self, call: exp.Expr) -> bool:
        for word in ("NULL", "ABSENT"):
            if self._match_text_seq(word, "ON", "NULL"):
                call.set("on_null", word)
                return True
        return False

    def _json_item(self) -> exp.Expr:
        found = self._parse_disjunction()
        if found is None:
            self.raise_error("expected a value")
            raise AssertionError
        return found


JSON_PARSERS: dict[str, Callable[..., Any]] = {
    "JSON_VALUE": lambda self: self._json_path_call("JSON_VALUE"),
    "JSON_QUERY": lambda self: self._json_path_call("JSON_QUERY"),
    "JSON_EXISTS": lambda self: self._json_path_call("JSON_EXISTS"),
    "JSON_OBJECT": lambda self: self._json_list("JSON_OBJECT"),
    "JSON_ARRAY": lambda self: self._json_list("JSON_ARRAY"),
}
