"""Reads one statement: CREATE TABLE, CREATE VIEW, SET, INSERT INTO or a query.

Flink SQL that rejoin does not support is refused here by name, where the syntax shows it.
"""

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.sql.parse.dialect import FlinkParser, UnparsableError
from spark_jobs.sql.parse.source_text import nearest
from spark_jobs.sql.parse.statements import (
    ColumnClause,
    ConflictStrategy,
    CreateFunction,
    CreateTable,
    CreateTemporalFunction,
    CreateView,
    InsertInto,
    KeyClause,
    LikeClause,
    LikePart,
    LikeRule,
    Name,
    OptionClause,
    Query,
    SetOption,
    Statement,
    WatermarkClause,
)

_STATEMENTS = (
    "CREATE TABLE",
    "CREATE VIEW",
    "CREATE TEMPORAL TABLE FUNCTION",
    "CREATE FUNCTION",
    "SET",
    "INSERT INTO",
    "EXECUTE STATEMENT SET",
)
_CONFLICTS: dict[str, ConflictStrategy] = {
    "DEDUPLICATE": "deduplicate",
    "NOTHING": "nothing",
    "ERROR": "error",
}
# Flink's rules for what LIKE takes over, where the statement says nothing
_LIKE_RULES: dict[LikePart, LikeRule] = {
    "CONSTRAINTS": "INCLUDING",
    "GENERATED": "INCLUDING",
    "METADATA": "INCLUDING",
    "OPTIONS": "OVERWRITING",
    "WATERMARKS": "INCLUDING",
}
_LIKE_WORDS: tuple[LikeRule, ...] = ("INCLUDING", "EXCLUDING", "OVERWRITING")
# parts of a table that no table has here
_NO_PARTS = ("PARTITIONS", "DISTRIBUTION")
_REFUSED = (
    "ADD",
    "ALTER",
    "ANALYZE",
    "CALL",
    "COMPILE",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DROP",
    "EXPLAIN",
    "LOAD",
    "REMOVE",
    "RESET",
    "SHOW",
    "TRUNCATE",
    "UNLOAD",
    "UPDATE",
    "USE",
)


class _UnsupportedSyntaxError(UnparsableError):
    """Flink SQL that rejoin does not have."""

    def __init__(self, message: str, start: int, hint: str | None = None) -> None:
        super().__init__(message, start, hint)
        self.unsupported = True


class StatementParser(FlinkParser):
    """The statements around queries."""

    def statement(self, tokens: list[Token], sql: str) -> list[Statement]:
        tokens, on_conflict = _without_conflict(tokens)
        self.begin(tokens, sql)
        for token in tokens:
            if token.token_type == TokenType.UNKNOWN and token.text == '"':
                hint = "write texts in single quotes, names in backticks"
                raise UnparsableError("unexpected double quote", token.start, hint)
            # sqlglot's parser fails on Flink's form of it
            if token.token_type == TokenType.VAR and token.text.upper() == "MATCH_RECOGNIZE":
                raise _UnsupportedSyntaxError("MATCH_RECOGNIZE is not supported", token.start)
        first = self._curr.text.upper()
        match first:
            case "CREATE":
                self._advance()
                found = self._create()
            case "SET":
                self._advance()
                found = self._set(tokens)
            case "INSERT":
                found = self._insert(on_conflict)
            case "SELECT" | "WITH" | "(" | "VALUES":
                found = Query(self._query(), tokens[0].start)
            case _:
                self._refuse_statement(first)
        if self._curr:
            self._unexpected()
        return [found]

    def _refuse_statement(self, first: str) -> None:
        start = self._curr.start
        if first in _REFUSED:
            raise _UnsupportedSyntaxError(
                f"{first} is not supported",
                start,
                f"a job file has {', '.join(_STATEMENTS)}",
            )
        hint = nearest(first, ("CREATE", "SET", "INSERT", "SELECT", "EXECUTE"))
        raise UnparsableError(
            f"'{self._curr.text}' does not begin a statement",
            start,
            hint or f"a job file has {', '.join(_STATEMENTS)}",
        )

    def _unexpected(self) -> None:
        self.raise_error(f"unexpected '{self._curr.text}'")

    def _query(self) -> exp.Expr:
        query = self._parse_set_operations(self._parse_select(nested=True))
        if query is None:
            self.raise_error("expected SELECT")
            raise AssertionError
        return self._parse_query_modifiers(query)

    def _parse_statement(self) -> exp.Expr | None:
        """What stands in WITH and behind it: a query and nothing else."""
        return self._query()

    def _name(self, what: str) -> Name:
        """An unqualified name."""
        token = self._curr
        quoted = token.token_type == TokenType.IDENTIFIER
        if token.token_type == TokenType.STRING or not (quoted or _is_word(token)):
            self.raise_error(f"expected {what}, found {self._found()}")
        self._advance()
        if self._match(TokenType.DOT, advance=False):
            raise _UnsupportedSyntaxError(
                "names with a catalog or database are not supported",
                token.start,
                "use the name alone: a job file has one name space",
            )
        return Name(token.text, token.start)

    def _text(self, what: str) -> Name:
        token = self._curr
        if not self._match(TokenType.STRING):
            self.raise_error(f"expected {what} in single quotes, found {self._found()}")
        return Name(token.text, token.start)

    def _need(self, *words: str) -> None:
        for word in words:
            if not self._match_texts((word,)):
                self.raise_error(f"expected {word}, found {self._found()}")

    def _found(self) -> str:
        return f"'{self._curr.text}'" if self._curr else "the end of the statement"

    def _names(self, what: str) -> tuple[Name, ...]:
        self._need("(")
        names = [self._name(what)]
        while self._match(TokenType.COMMA):
            names.append(self._name(what))
        self._need(")")
        return tuple(names)

    def _expression(self) -> exp.Expr:
        found = self._parse_disjunction()
        if found is None:
            self.raise_error("expected an expression")
            raise AssertionError
        return found

    def _create(self) -> Statement:
        if self._match_text_seq("TEMPORAL", "TABLE", "FUNCTION"):
            return self._create_temporal_function()
        self._match_texts(("TEMPORARY",))
        if self._match_texts(("TABLE",)):
            return self._create_table()
        if self._match_texts(("VIEW",)):
            return self._create_view()
        self._match_texts(("SYSTEM",))
        if self._match_texts(("FUNCTION",)):
            return self._create_function()
        kind = self._curr.text.upper() if self._curr else ""
        raise _UnsupportedSyntaxError(
            f"CREATE {kind} is not supported",
            self._prev.start,
            "a job file creates tables, views, Python functions and temporal table functions",
        )

    def _create_function(self) -> CreateFunction:
        if_not_exists = self._if_not_exists()
        name = self._name("the function's name")
        self._need("AS")
        target = self._text("'module.function'")
        language = self._curr.text.upper() if self._match_texts(("LANGUAGE",)) else "JAVA"
        if language != "PYTHON":
            raise _UnsupportedSyntaxError(
                f"a function in {language} is not supported",
                target.start,
                "write it in Python: CREATE FUNCTION f AS 'module.function' LANGUAGE PYTHON",
            )
        self._advance()
        return CreateFunction(name, if_not_exists, target)

    def _create_temporal_function(self) -> CreateTemporalFunction:
        name = self._name("the function's name")
        self._need("FOR")
        table = self._name("a table or view")
        self._need("TIME", "ATTRIBUTE")
        time = self._name("a time column")
        self._need("PRIMARY KEY")
        return CreateTemporalFunction(name, table, time, self._names("a key column"))

    def _if_not_exists(self) -> bool:
        return self._match_text_seq("IF", "NOT", "EXISTS")

    def _create_view(self) -> CreateView:
        if_not_exists = self._if_not_exists()
        name = self._name("the view's name")
        columns: tuple[Name, ...] = ()
        if self._match(TokenType.L_PAREN, advance=False):
            columns = self._names("a column name")
        self._comment()
        self._need("AS")
        return CreateView(name, if_not_exists, columns, self._query())

    def _create_table(self) -> CreateTable:
        if_not_exists = self._if_not_exists()
        name = self._name("the table's name")
        columns: list[ColumnClause] = []
        keys: list[KeyClause] = []
        watermarks: list[WatermarkClause] = []
        if not self._curr or self._curr.text.upper() not in ("LIKE", "WITH", "AS"):
            self._need("(")
            while not self._match(TokenType.R_PAREN):
                if columns or keys or watermarks:
                    self._need(",")
                self._table_item(columns, keys, watermarks)
        self._comment()
        options = self._options()
        like = self._like() if self._match_texts(("LIKE",)) else None
        if self._curr:
            self._refuse_table_clause()
        if like is None and not columns:
            self._need("(")
        return CreateTable(
            name, if_not_exists, tuple(columns), tuple(keys), tuple(watermarks), options, like
        )

    def _like(self) -> LikeClause:
        table = self._name("a table")
        rules = dict(_LIKE_RULES)
        if self._match(TokenType.L_PAREN):
            while not self._match(TokenType.R_PAREN):
                self._like_rule(rules)
        return LikeClause(table, rules)

    def _like_rule(self, rules: dict[LikePart, LikeRule]) -> None:
        start = self._curr
        rule = next((r for r in _LIKE_WORDS if self._match_texts((r,))), None)
        part = next((p for p in ("ALL", *_LIKE_RULES, *_NO_PARTS) if self._match_texts((p,))), None)
        if rule is None or part is None:
            self.raise_error("expected INCLUDING, EXCLUDING or OVERWRITING and what", start)
            raise AssertionError
        if rule == "OVERWRITING" and part in ("ALL", "CONSTRAINTS", *_NO_PARTS):
            self.raise_error(f"{part} can be INCLUDING or EXCLUDING alone", start)
        named = [p for p in _LIKE_RULES if part in ("ALL", p)]
        rules.update(dict.fromkeys(named, rule))

    def _refuse_table_clause(self) -> None:
        clause = self._curr.text.upper()
        hints = {
            "AS": "use CREATE TABLE and INSERT INTO",
            "PARTITIONED BY": "Kafka topics have their own partitions",
            "DISTRIBUTED": "Kafka topics have their own partitions",
        }
        if clause in hints:
            raise _UnsupportedSyntaxError(
                f"{clause} in CREATE TABLE is not supported", self._curr.start, hints[clause]
            )
        self._unexpected()

    def _options(self) -> tuple[OptionClause, ...]:
        if not self._match(TokenType.WITH):
            return ()
        found: list[OptionClause] = []
        self._need("(")
        while not self._match(TokenType.R_PAREN):
            if found:
                self._need(",")
            key = self._text("an option name")
            self._need("=")
            found.append(OptionClause(key, self._text("an option value")))
        return tuple(found)

    def _table_item(
        self,
        columns: list[ColumnClause],
        keys: list[KeyClause],
        watermarks: list[WatermarkClause],
    ) -> None:
        start = self._curr.start
        if self._match_text_seq("WATERMARK", "FOR"):
            column = self._name("the watermark's column")
            self._need("AS")
            watermarks.append(WatermarkClause(column, self._expression(), start))
            return
        if self._match_texts(("CONSTRAINT",)):
            self._name("the constraint's name")
        if self._match(TokenType.PRIMARY_KEY):
            names = self._names("a key column")
            self._not_enforced(start)
            keys.append(KeyClause(names, start))
            return
        if self._match_texts(("UNIQUE", "CHECK", "FOREIGN KEY")):
            raise _UnsupportedSyntaxError(
                f"{self._prev.text.upper()} constraints are not supported",
                start,
                "the only constraint is PRIMARY KEY (...) NOT ENFORCED",
            )
        column_clause = self._column(keys)
        columns.append(column_clause)

    def _column(self, keys: list[KeyClause]) -> ColumnClause:
        name = self._name("a column name")
        if self._match(TokenType.ALIAS):
            computed = self._expression()
            self._comment()
            return ColumnClause(name, computed=computed)
        type_ = self.parse_data_type()
        metadata_key, virtual = None, False
        if self._match_texts(("METADATA",)):
            metadata_key = self._text("a metadata key") if self._match_texts(("FROM",)) else name
            virtual = self._match_texts(("VIRTUAL",))
        elif self._match_text_seq("CONSTRAINT"):
            self._name("the constraint's name")
        start = self._curr.start if self._curr else name.start
        if self._match(TokenType.PRIMARY_KEY):
            self._not_enforced(start)
            keys.append(KeyClause((name,), start))
        self._comment()
        return ColumnClause(name, type_, None, metadata_key, virtual)

    def _not_enforced(self, start: int) -> None:
        if not self._match_text_seq("NOT", "ENFORCED"):
            raise UnparsableError(
                "rejoin does not check a PRIMARY KEY",
                start,
                "write PRIMARY KEY (...) NOT ENFORCED",
            )

    def _comment(self) -> None:
        if self._match_texts(("COMMENT",)):
            self._text("a comment")

    def _set(self, tokens: list[Token]) -> SetOption:
        if self._curr.token_type == TokenType.STRING:
            key = self._text("a setting")
            self._need("=")
            return SetOption(key, self._text("a value"))
        if not self._curr:
            raise _UnsupportedSyntaxError(
                "SET without a setting is not supported", tokens[0].start, "SET 'key' = 'value'"
            )
        return self._unquoted_set(tokens)

    def _unquoted_set(self, tokens: list[Token]) -> SetOption:
        """The old form `SET table.local-time-zone=UTC`: plain text up to the semicolon."""
        start, end = tokens[1].start, tokens[-1].end + 1
        written = self.sql[start:end]
        key, equals, value = written.partition("=")
        if not equals:
            raise UnparsableError("expected SET 'key' = 'value'", start)
        self._advance(len(tokens) - 1)
        offset = start + len(key) + 1
        offset += len(value) - len(value.lstrip())
        return SetOption(Name(key.strip(), start), Name(value.strip().strip("'"), offset))

    def _insert(self, on_conflict: ConflictStrategy | None) -> InsertInto:
        start = self._curr.start
        self._advance()
        if self._match_texts(("OVERWRITE",)):
            raise _UnsupportedSyntaxError(
                "INSERT OVERWRITE is not supported", start, "a topic can only be appended to"
            )
        self._need("INTO")
        table = self._name("the sink's name")
        if self._match_texts(("PARTITION",)):
            raise _UnsupportedSyntaxError("PARTITION in INSERT is not supported", start)
        columns: tuple[Name, ...] = ()
        if self._match(TokenType.L_PAREN, advance=False) and not self._starts_query():
            columns = self._names("a column name")
        return InsertInto(table, columns, self._query(), start, on_conflict)

    def _starts_query(self) -> bool:
        return self._next.token_type in (TokenType.SELECT, TokenType.L_PAREN)


def _without_conflict(tokens: list[Token]) -> tuple[list[Token], ConflictStrategy | None]:
    """An INSERT without its ON CONFLICT DO ..., whose ON the parser would take for a join's."""
    words = [t.text.upper() for t in tokens]
    if words[:1] != ["INSERT"] or words[-4:-1] != ["ON", "CONFLICT", "DO"]:
        return tokens, None
    strategy = _CONFLICTS.get(words[-1])
    if strategy is None:
        hint = nearest(words[-1], _CONFLICTS) or f"use one of {', '.join(_CONFLICTS)}"
        raise UnparsableError(f"no conflict strategy {words[-1]}", tokens[-1].start, hint)
    return tokens[:-4], strategy


def _is_word(token: Token) -> bool:
    return bool(token) and (token.text[:1].isalpha() or token.text[:1] == "_")
