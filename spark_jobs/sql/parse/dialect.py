"""Flink SQL for sqlglot: its tokens, and the queries and expressions that differ from the base.

Functions stay calls by their Flink names (`exp.Anonymous`): sqlglot would translate them to its own
vocabulary, and the binder must know what was written. Statements are read by parser.py.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.sql.parse.json_functions import JSON_PARSERS, JsonParser
from spark_jobs.sql.parse.syntax import (
    HintText,
    IntervalLiteral,
    NamedArgument,
    TableArgument,
    TableFunction,
    TypedCast,
    TypedLiteral,
)
from spark_jobs.sql.types.type_text import (
    TypeTextError,
    UnsupportedTypeError,
    WrittenType,
    parse_type_at,
)

# units of INTERVAL, EXTRACT, FLOOR(x TO unit), TIMESTAMPADD
UNITS = (
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "DOW",
    "DOY",
    "ISODOW",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "MICROSECOND",
    "EPOCH",
)
# Flink's operators of more than one character; sqlglot has many more
_SYMBOLS = ("||", ">=", "<=", "<>", "!=", "=>", "/*+")
_TYPED_LITERALS = {
    TokenType.DATE: "DATE",
    TokenType.TIME: "TIME",
    TokenType.TIMESTAMP: "TIMESTAMP",
    TokenType.TIMESTAMPLTZ: "TIMESTAMP_LTZ",
}
CONSTRUCTORS = {TokenType.ARRAY: "ARRAY[]", TokenType.MAP: "MAP[]", TokenType.ROW: "ROW()"}
_CLOCK_FUNCTIONS = {
    TokenType.CURRENT_DATE: "CURRENT_DATE",
    TokenType.CURRENT_TIME: "CURRENT_TIME",
    TokenType.CURRENT_TIMESTAMP: "CURRENT_TIMESTAMP",
    TokenType.LOCALTIME: "LOCALTIME",
    TokenType.LOCALTIMESTAMP: "LOCALTIMESTAMP",
}


class UnparsableError(ParseError):
    """A syntax error, and the characters of the text it is about."""

    def __init__(self, message: str, start: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.description = message
        self.start = start
        self.hint = hint
        self.unsupported = False


class FlinkTokenizer(tokens.Tokenizer):
    """Backticks quote names, and a hint is always a token, so that none is lost as a comment."""

    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]
    HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]
    NESTED_COMMENTS = False
    COMMANDS: ClassVar[set[TokenType]] = set()
    TOKENS_PRECEDING_HINT: ClassVar[set[TokenType]] = set(TokenType)
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        word: type_
        for word, type_ in tokens.Tokenizer.KEYWORDS.items()
        if word in _SYMBOLS or (word[0].isalpha() and word not in ("ISNULL", "NOTNULL"))
    }


class FlinkParser(JsonParser):
    """Reads one statement's tokens at a time; stops at the first error of a statement."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CAST": lambda self: self._flink_cast("CAST"),
        "TRY_CAST": lambda self: self._flink_cast("TRY_CAST"),
        "EXTRACT": lambda self: self._flink_extract(),
        "TRIM": lambda self: self._flink_trim(),
        "SUBSTRING": lambda self: self._flink_substring(),
        "POSITION": lambda self: self._flink_position(),
        "OVERLAY": lambda self: self._flink_overlay(),
        "FLOOR": lambda self: self._flink_rounding("FLOOR"),
        "CEIL": lambda self: self._flink_rounding("CEIL"),
        "CEILING": lambda self: self._flink_rounding("CEIL"),
        **JSON_PARSERS,
        "JSON_ARRAYAGG": lambda self: self._json_aggregate(
            "JSON_ARRAYAGG", "use JSON_STRING(ARRAY_AGG(x) IGNORE NULLS)"
        ),
        "JSON_OBJECTAGG": lambda self: self._json_aggregate(
            "JSON_OBJECTAGG", "JSON_STRING(ARRAY_AGG(ROW(key, value))) is an array of objects"
        ),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CASE": lambda self: self._flink_case(),
    }
    PRIMARY_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **parser.Parser.PRIMARY_PARSERS,
        TokenType.TRUE: lambda _, token: exp.Boolean(this=True).update_positions(token),
        TokenType.FALSE: lambda _, token: exp.Boolean(this=False).update_positions(token),
        TokenType.NULL: lambda _, token: exp.Null().update_positions(token),
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}

    def begin(self, statement: list[Token], sql: str) -> None:
        """Stand at the first token of a statement."""
        self.reset()
        self.error_level = ErrorLevel.IMMEDIATE
        self.sql = sql
        self._chunks = [statement]
        self._advance_chunk()

    @property
    def offset(self) -> int:
        """Where in the text the parser stands."""
        return (self._curr or self._prev).start

    def raise_error(self, message: str, token: Token = parser.SENTINEL_NONE) -> None:
        token = token or self._curr or self._prev
        if token and token.token_type == TokenType.HINT:
            hint = (
                "options of a table stand in its WITH; CREATE TABLE ... LIKE replaces some of them"
            )
            is_options = token.text[3:].lstrip().upper().startswith("OPTIONS")
            raise _unsupported(f"the hint {token.text}", token, hint if is_options else None)
        if message.startswith("Required keyword"):
            # sqlglot's message for an operator or clause without its operand
            message = f"something is missing before '{token.text}'" if self._curr else "incomplete"
        raise UnparsableError(message, token.start if token else 0)

    def parse_data_type(self) -> WrittenType:
        """A type by Flink's own grammar, which works on text; then catch up with the tokens."""
        if not self._curr:
            self.raise_error("expected a type")
        try:
            found, end = parse_type_at(self.sql, self._curr.start)
        except TypeTextError as error:
            wrong = UnparsableError(error.message, error.offset, error.hint)
            wrong.unsupported = isinstance(error, UnsupportedTypeError)
            raise wrong from error
        while self._curr and self._curr.start < end:
            self._advance()
        return found

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """Table functions have their own grammar; window functions are refused at once."""
        start = self._curr
        if self._match_texts(("LATERAL",)) and self._curr.token_type != TokenType.UNNEST:
            if self._match(TokenType.L_PAREN, advance=False):
                query = super()._parse_table(*args, **kwargs)
                return exp.Lateral(this=query).update_positions(start)
            return self._flink_table_function(start)
        if self._match_texts(("TABLE",)):
            self._match(TokenType.L_PAREN)
            name = self._curr.text.upper() if self._curr else ""
            hint = "GROUP BY FLOOR(time TO MINUTE) counts per minute, and updates the counts"
            is_window = name in ("TUMBLE", "HOP", "CUMULATE", "SESSION")
            raise _unsupported(f"the table function {name}", start, hint if is_window else None)
        return super()._parse_table(*args, **kwargs)

    def _parse_unnest(self, with_alias: bool = True) -> exp.Unnest | None:
        """`UNNEST(collection) [WITH ORDINALITY] [AS t [(columns)]]`."""
        start = self._curr
        if not self._match_pair(TokenType.UNNEST, TokenType.L_PAREN, advance=False):
            return None
        self._advance()
        arguments = self._parse_wrapped_csv(self._parse_disjunction)
        ordinality = self._match_pair(TokenType.WITH, TokenType.ORDINALITY)
        alias = self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS)
        found = exp.Unnest(expressions=arguments, alias=alias, offset=bool(ordinality))
        return found.update_positions(start)

    def _flink_table_function(self, start: Token) -> exp.Expr:
        """`TABLE (name(...))` behind LATERAL, or `SNAPSHOT(...)` alone."""
        wrapped = self._match_texts(("TABLE",))
        if not wrapped and self._curr.text.upper() != "SNAPSHOT":
            raise _unsupported("LATERAL without TABLE", start)
        if wrapped:
            self._flink_sign(TokenType.L_PAREN, "(")
        name = self._flink_word("the name of a table function")
        self._flink_sign(TokenType.L_PAREN, "(")
        arguments: list[exp.Expr] = []
        while not self._match(TokenType.R_PAREN):
            if arguments:
                self._flink_sign(TokenType.COMMA, ",")
            arguments.append(self._flink_argument())
        if wrapped:
            self._flink_sign(TokenType.R_PAREN, ")")
        alias = self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS)
        found = TableFunction(this=name, expressions=arguments, alias=alias)
        return found.update_positions(start)

    def _flink_argument(self) -> exp.Expr:
        start = self._curr
        if self._next.token_type == TokenType.FARROW:
            name = self._flink_word("the name of an argument")
            self._advance()
            return NamedArgument(this=name, expression=self._flink_argument())
        if self._match_texts(("TABLE",)):
            return TableArgument(this=self._flink_word("the name of a table"))
        found = self._parse_disjunction()
        if found is None:
            self.raise_error("expected an argument", start)
            raise AssertionError
        return found

    def _flink_word(self, what: str) -> exp.Expr:
        token = self._curr
        if not token or not (token.token_type == TokenType.IDENTIFIER or token.text[:1].isalpha()):
            self.raise_error(f"expected {what}")
        self._advance()
        return exp.Identifier(this=token.text, quoted=False).update_positions(token)

    def _flink_sign(self, sign: TokenType, text: str) -> None:
        if not self._match(sign):
            self.raise_error(f"expected {text}")

    def _parse_hint(self) -> exp.Expr | None:  # type: ignore[override]
        """The hint after SELECT; anywhere else it is an error, because no hint may be ignored."""
        if self._match(TokenType.HINT):
            return HintText(this=self._prev.text).update_positions(self._prev)
        return None

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        start = self._curr
        found = super()._parse_function_call(*args, **kwargs)
        # the base class gives EXISTS no position
        return found.update_positions(start) if isinstance(found, exp.Exists) else found

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        """A comma is a join; the base class would take an error after it for the end of FROM."""
        if self._match(TokenType.COMMA):
            return exp.Join(this=self._parse_table(), kind="CROSS")
        return super()._parse_join(*args, **kwargs)

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        found = super()._parse_projections()
        if not found[0]:
            self.raise_error("expected a column or an expression after SELECT")
        return found

    def _parse_version(self) -> exp.Version | None:
        """`FOR SYSTEM_TIME AS OF time`."""
        if not self._match_text_seq("FOR", "SYSTEM_TIME"):
            return None
        if not self._match_text_seq("AS", "OF"):
            self.raise_error("expected AS OF after FOR SYSTEM_TIME")
        time = self._parse_bitwise()
        if time is None:
            self.raise_error("expected a time after AS OF")
        return exp.Version(this="SYSTEM_TIME", expression=time, kind="AS OF")

    def _parse_type(
        self, parse_interval: bool = True, fallback_to_identifier: bool = False
    ) -> exp.Expr | None:
        start = self._curr
        if start.token_type in _TYPED_LITERALS and self._next.token_type == TokenType.STRING:
            self._advance(2)
            kind = _TYPED_LITERALS[start.token_type]
            return TypedLiteral(this=self._prev.text, kind=kind).update_positions(start)
        if start.token_type in _CLOCK_FUNCTIONS and self._next.token_type != TokenType.DOT:
            self._advance()
            if self._match(TokenType.L_PAREN):
                self._parse_csv(self._parse_disjunction)
                self._match_r_paren()
            name = _CLOCK_FUNCTIONS[start.token_type]
            return exp.Anonymous(this=name, expressions=[]).update_positions(start)
        if start.token_type == TokenType.INTERVAL and self._starts_interval():
            return self._flink_interval()
        if start.token_type in CONSTRUCTORS:
            constructor = self._flink_constructor()
            if constructor is not None:
                return self._parse_column_ops(constructor)
        return self._parse_primary_or_column()

    def _parse_primary(self) -> exp.Expr | None:
        """`.5` as it is written, because its digits are its type."""
        start = self._curr
        if self._match_pair(TokenType.DOT, TokenType.NUMBER):
            return exp.Literal.number(f".{self._prev.text}").update_positions(start)
        return super()._parse_primary()

    def _parse_primary_or_column(self) -> exp.Expr | None:
        return self._parse_atom() or self._parse_column()

    def _starts_interval(self) -> bool:
        return self._next.token_type in (TokenType.STRING, TokenType.DASH, TokenType.NUMBER)

    def _flink_interval(self) -> exp.Expr:
        start = self._curr
        self._advance()
        negative = self._match(TokenType.DASH)
        if not self._match_set((TokenType.STRING, TokenType.NUMBER)):
            self.raise_error("expected the text of an interval, such as INTERVAL '5' SECOND")
        text = self._prev.text
        unit, to = self._interval_unit(), None
        if self._match_text_seq("TO"):
            to = self._interval_unit()
        found = IntervalLiteral(this=text, unit=unit, to=to, negative=negative)
        return found.update_positions(start)

    def _interval_unit(self) -> str:
        unit = self._unit()
        if self._match(TokenType.L_PAREN):
            # a precision such as DAY(3) only bounds the leading digits
            self._parse_csv(self._parse_number)
            self._match_r_paren()
        return unit

    def _unit(self) -> str:
        text = self._curr.text.upper() if self._curr else ""
        unit = text if text in UNITS else text.removesuffix("S")
        if unit not in UNITS:
            self.raise_error("expected a time unit such as SECOND, MINUTE, HOUR, DAY, MONTH, YEAR")
        self._advance()
        return unit

    def _flink_constructor(self) -> exp.Expr | None:
        """`ARRAY[1, 2]`, `MAP['a', 1]`, `ROW(1, 'a')`."""
        start = self._curr
        opening = TokenType.L_PAREN if start.token_type == TokenType.ROW else TokenType.L_BRACKET
        closing = TokenType.R_PAREN if start.token_type == TokenType.ROW else TokenType.R_BRACKET
        if self._next.token_type != opening:
            return None
        self._advance(2)
        items = self._parse_csv(self._parse_disjunction)
        if not self._match(closing):
            self.raise_error("expected the end of the list")
        # a name that sqlglot does not know, so that it leaves the call as it is
        name = CONSTRUCTORS[start.token_type]
        return exp.Anonymous(this=name, expressions=items).update_positions(start)

    def _flink_case(self) -> exp.Expr:
        start = self._prev
        found = self._parse_case()
        if found is None:
            self.raise_error("incomplete CASE")
            raise AssertionError
        return found.update_positions(start)

    def _flink_cast(self, op: str) -> exp.Expr:
        value = self._parse_disjunction()
        if value is None:
            self.raise_error(f"expected a value in {op}")
        if not self._match(TokenType.ALIAS):
            self.raise_error(f"expected AS and a type in {op}")
        return TypedCast(this=value, to=self.parse_data_type(), op=op)

    def _flink_extract(self) -> exp.Expr:
        unit = self._unit()
        if not self._match(TokenType.FROM):
            self.raise_error("expected FROM in EXTRACT(unit FROM value)")
        return self._call("EXTRACT", exp.Literal.string(unit), self._parse_disjunction())

    def _flink_trim(self) -> exp.Expr:
        side = "BOTH"
        if self._match_texts(("BOTH", "LEADING", "TRAILING")):
            side = self._prev.text.upper()
        what: exp.Expr | None = exp.Literal.string(" ")
        value = None if self._match(TokenType.FROM, advance=False) else self._parse_disjunction()
        if self._match(TokenType.FROM):
            what, value = value or what, self._parse_disjunction()
        return self._call("TRIM", exp.Literal.string(side), what, value)

    def _flink_substring(self) -> exp.Expr:
        args = [self._parse_disjunction()]
        if self._match(TokenType.FROM):
            args.append(self._parse_disjunction())
            if self._match(TokenType.FOR):
                args.append(self._parse_disjunction())
        while self._match(TokenType.COMMA):
            args.append(self._parse_disjunction())
        return self._call("SUBSTRING", *args)

    def _flink_position(self) -> exp.Expr:
        what = self._parse_bitwise()
        if not self._match(TokenType.IN):
            self.raise_error("expected IN in POSITION(part IN text)")
        return self._call("POSITION", what, self._parse_bitwise())

    def _flink_overlay(self) -> exp.Expr:
        args = [self._parse_disjunction()]
        for word in ("PLACING", "FROM", "FOR"):
            if self._match_text_seq(word) or self._match(TokenType.COMMA):
                args.append(self._parse_disjunction())
        return self._call("OVERLAY", *args)

    def _json_aggregate(self, name: str, hint: str) -> exp.Expr:
        """Refused before its clauses are read, which no other call has."""
        start = self._tokens[self._index - 2]  # before the parenthesis
        raise _unsupported(f"the aggregate function {name}", start, hint)

    def _flink_rounding(self, name: str) -> exp.Expr:
        args = [self._parse_disjunction()]
        if self._match_text_seq("TO"):
            args.append(exp.Literal.string(self._unit()))
        return self._call(name, *args)

    def _call(self, name: str, *args: exp.Expr | None) -> exp.Expr:
        if any(a is None for a in args):
            self.raise_error(f"{name} needs one more argument")
        return exp.Anonymous(this=name, expressions=list(args))


def _unsupported(what: str, start: Token, hint: str | None = None) -> UnparsableError:
    error = UnparsableError(f"{what} is not supported", start.start, hint)
    error.unsupported = True
    return error


class Flink(Dialect):
    """The dialect; only its tokenizer and parser are used."""

    Tokenizer = FlinkTokenizer
    Parser = FlinkParser
