"""Binds CREATE TABLE ... LIKE: the statement with what it takes over from another table's."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from spark_jobs.errors import CatalogError
from spark_jobs.sql.parse.source_text import NotBoundError, SourceText, nearest
from spark_jobs.sql.parse.statements import (
    ColumnClause,
    CreateTable,
    KeyClause,
    LikeClause,
    OptionClause,
    WatermarkClause,
)


def like_table(
    source: SourceText, statement: CreateTable, like: LikeClause, created: Mapping[str, CreateTable]
) -> CreateTable:
    """The statement without LIKE; columns of the other table stand first, as in Flink.

    Raises:
        PositionedError, NotBoundError: there is no such table, or both have what only one may have.
    """
    base = created.get(like.table.text)
    if base is None and like.table.text in source.broken:
        raise NotBoundError
    if base is None:
        hint = nearest(like.table.text, created) or "put its CREATE TABLE before this statement"
        error = CatalogError("UNKNOWN_TABLE", f"no table {like.table.text}", hint)
        raise source.place(error, like.table.start)
    merging = _Merging(source, like, base, statement)
    with source.all_or_nothing():
        found = replace(
            statement,
            columns=(*merging.columns(), *statement.columns),
            keys=(*merging.keys(), *statement.keys),
            watermarks=(*merging.watermarks(), *statement.watermarks),
            options=(*merging.options(), *statement.options),
            like=None,
        )
    return found


class _Merging:
    """What is taken over, part by part; problems are reported to the source."""

    def __init__(
        self, source: SourceText, like: LikeClause, base: CreateTable, statement: CreateTable
    ) -> None:
        self.source = source
        self.rules = like.rules
        self.base = base
        self.statement = statement

    def columns(self) -> Iterator[ColumnClause]:
        """A column of the record is always taken over, and can never be declared again."""
        own = {clause.name.text: clause for clause in self.statement.columns}
        for clause in self.base.columns:
            part = None
            if clause.computed is not None:
                part = self.rules["GENERATED"]
            elif clause.metadata_key is not None:
                part = self.rules["METADATA"]
            again = own.get(clause.name.text)
            if part == "EXCLUDING" or (part == "OVERWRITING" and again is not None):
                continue
            if again is not None:
                hint = None
                if part is not None:
                    kind = "GENERATED" if clause.computed is not None else "METADATA"
                    hint = f"LIKE {self.base.name.text} (OVERWRITING {kind})"
                self._twice(f"column {again.name.text}", again.name.start, hint)
            yield clause

    def keys(self) -> Iterator[KeyClause]:
        if self.rules["CONSTRAINTS"] == "EXCLUDING":
            return
        if self.base.keys and self.statement.keys:
            hint = f"LIKE {self.base.name.text} (EXCLUDING CONSTRAINTS)"
            self._twice("a PRIMARY KEY", self.statement.keys[0].start, hint)
            return
        yield from self.base.keys

    def watermarks(self) -> Iterator[WatermarkClause]:
        rule, own = self.rules["WATERMARKS"], self.statement.watermarks
        if rule == "EXCLUDING" or (rule == "OVERWRITING" and own):
            return
        if self.base.watermarks and own:
            hint = f"LIKE {self.base.name.text} (OVERWRITING WATERMARKS)"
            self._twice("a watermark", own[0].start, hint)
            return
        yield from self.base.watermarks

    def options(self) -> Iterator[OptionClause]:
        rule = self.rules["OPTIONS"]
        own = {clause.key.text: clause.key for clause in self.statement.options}
        for clause in self.base.options if rule != "EXCLUDING" else ():
            again = own.get(clause.key.text)
            if again is None:
                yield clause
            elif rule == "INCLUDING":
                hint = f"LIKE {self.base.name.text} (OVERWRITING OPTIONS)"
                self._twice(f"option '{again.text}'", again.start, hint)

    def _twice(self, what: str, start: int, hint: str | None) -> None:
        problem = f"{what} is in {self.base.name.text} already"
        self.source.report(CatalogError("TABLE_LIKE", problem, hint), start)
