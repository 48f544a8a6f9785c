"""The functions of Flink SQL that queries may call, and the ones refused by name.

A signature reads `kinds of arguments -> result`. `[kind]` may be left out, `kind*` may repeat,
`same` arguments are cast to their common type. A result followed by `?` may be NULL whatever the
arguments are; otherwise it may be NULL if an argument may.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.coercion import common_type, digits
from spark_jobs.sql.types.data_types import DataType, RowField, same_type, with_nullable
from spark_jobs.sql.types.expr import Expr, Literal

AggregateFunction: TypeAlias = OneOf[
    "COUNT", "SUM", "MIN", "MAX", "AVG",
    "STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP",
    "FIRST_VALUE", "LAST_VALUE", "LISTAGG", "ARRAY_AGG",
]  # fmt: skip

SIGNATURES = {
    # texts
    "UPPER": "string -> STRING",
    "LOWER": "string -> STRING",
    "CHAR_LENGTH": "string -> INT",
    "SUBSTR": "string, integer, [integer] -> STRING?",
    "TRIM": "unit, string, string -> STRING",
    "LTRIM": "string, [string] -> STRING",
    "RTRIM": "string, [string] -> STRING",
    "CONCAT": "string, string* -> STRING",
    "CONCAT_WS": "string, string* -> STRING",
    "REPLACE": "string, string, string -> STRING",
    "REVERSE": "string -> STRING?",
    "REPEAT": "string, integer -> STRING",
    "LPAD": "string, integer, string -> STRING",
    "RPAD": "string, integer, string -> STRING",
    "LEFT": "string, integer -> STRING?",
    "RIGHT": "string, integer -> STRING?",
    "POSITION": "string, string -> INT",
    "INSTR": "string, string -> INT",
    "LOCATE": "string, string, [integer] -> INT",
    "SPLIT_INDEX": "string, string, integer -> STRING?",
    "REGEXP": "string, string -> BOOLEAN",
    "REGEXP_REPLACE": "string, string, string -> STRING",
    "REGEXP_EXTRACT": "string, string, [integer] -> STRING?",
    "MD5": "string -> STRING",
    "SHA1": "string -> STRING",
    "SHA224": "string -> STRING",
    "SHA256": "string -> STRING",
    "SHA384": "string -> STRING",
    "SHA512": "string -> STRING",
    "SHA2": "string, constant -> STRING",
    "ASCII": "string -> INT",
    "BTRIM": "string, [string] -> STRING",
    "CHR": "integer -> STRING",
    "DECODE": "bytes, string -> STRING",
    "ENCODE": "string, string -> BYTES",
    "ELT": "integer, string, string* -> STRING?",
    "STARTSWITH": "string, string -> BOOLEAN",
    "ENDSWITH": "string, string -> BOOLEAN",
    "FROM_BASE64": "string -> STRING",
    "TO_BASE64": "string -> STRING",
    "INITCAP": "string -> STRING",
    "OVERLAY": "string, string, integer, [integer] -> STRING",
    "PARSE_URL": "string, string, [string] -> STRING?",
    "PRINTF": "string, any* -> STRING?",
    "SPLIT": "string, string -> ARRAY<STRING>",
    "STR_TO_MAP": "string, [string], [string] -> MAP<STRING, STRING>",
    "TRANSLATE": "string, string, string -> STRING",
    "HEX": "text_or_integer -> STRING",
    "UNHEX": "string -> BYTES?",
    "URL_DECODE": "string -> STRING?",
    "URL_ENCODE": "string -> STRING?",
    "REGEXP_COUNT": "string, string -> INT?",
    "REGEXP_INSTR": "string, string -> INT?",
    "REGEXP_SUBSTR": "string, string -> STRING?",
    "REGEXP_EXTRACT_ALL": "string, string, [integer] -> ARRAY<STRING>?",
    "IS_ALPHA": "string -> BOOLEAN",
    "IS_DIGIT": "string -> BOOLEAN",
    "IS_DECIMAL": "string -> BOOLEAN",
    "INET_ATON": "string -> BIGINT?",
    "INET_NTOA": "integer -> STRING?",
    # numbers
    "ABS": "numeric -> arg",
    "MOD": "numeric, numeric -> mod",
    "ROUND": "numeric, [constant] -> round",
    "FLOOR": "number_or_time, [unit] -> floor",
    "CEIL": "number_or_time, [unit] -> floor",
    "TRUNCATE": "numeric, [constant] -> round",
    "POWER": "numeric, numeric -> DOUBLE",
    "SQRT": "numeric -> DOUBLE",
    "EXP": "numeric -> DOUBLE",
    "LN": "numeric -> DOUBLE",
    "LOG10": "numeric -> DOUBLE",
    "LOG": "numeric, [numeric] -> DOUBLE",
    "LOG2": "numeric -> DOUBLE",
    "SIN": "numeric -> DOUBLE",
    "COS": "numeric -> DOUBLE",
    "TAN": "numeric -> DOUBLE",
    "COT": "numeric -> DOUBLE",
    "ASIN": "numeric -> DOUBLE",
    "ACOS": "numeric -> DOUBLE",
    "ATAN": "numeric -> DOUBLE",
    "ATAN2": "numeric, numeric -> DOUBLE",
    "SINH": "numeric -> DOUBLE",
    "COSH": "numeric -> DOUBLE",
    "TANH": "numeric -> DOUBLE",
    "DEGREES": "numeric -> DOUBLE",
    "RADIANS": "numeric -> DOUBLE",
    "PI": " -> DOUBLE",
    "E": " -> DOUBLE",
    "BIN": "integer -> STRING",
    "SIGN": "numeric -> arg",
    # choices
    "COALESCE": "same, same* -> coalesce",
    "IFNULL": "same, same -> coalesce",
    "NULLIF": "any, any -> arg?",
    "IF": "boolean, same, same -> same",
    "GREATEST": "same, same* -> same",
    "LEAST": "same, same* -> same",
    # times
    "TO_TIMESTAMP_LTZ": "integer, [constant] -> TIMESTAMP_LTZ(3)?",
    "TO_TIMESTAMP": "string, [string] -> TIMESTAMP(3)?",
    "TO_DATE": "string, [string] -> DATE?",
    "DATE_FORMAT": "timestamp, string -> STRING?",
    "FROM_UNIXTIME": "integer, [string] -> STRING?",
    "EXTRACT": "unit, datetime -> BIGINT",
    "TIMESTAMPADD": "unit, integer, datetime -> last",
    "TIMESTAMPDIFF": "unit, date_or_timestamp, date_or_timestamp -> INT",
    "CONVERT_TZ": "string, string, string -> STRING?",
    "UNIX_TIMESTAMP": "string, [string] -> BIGINT",
    "PROCTIME": " -> TIMESTAMP_LTZ(3)",
    # parts
    "CARDINALITY": "collection -> INT",
    "ELEMENT": "array -> element?",
    "ARRAY_APPEND": "array, element -> appended",
    "ARRAY_CONCAT": "same_array, same_array* -> same",
    "ARRAY_CONTAINS": "array, element -> contains",
    "ARRAY_DISTINCT": "array -> arg",
    "ARRAY_EXCEPT": "same_array, same_array -> same",
    "ARRAY_INTERSECT": "same_array, same_array -> same",
    "ARRAY_JOIN": "array_of_texts, string, [string] -> STRING",
    "ARRAY_MAX": "array -> element?",
    "ARRAY_MIN": "array -> element?",
    "ARRAY_POSITION": "array, element -> INT",
    "ARRAY_PREPEND": "array, element -> appended",
    "ARRAY_REMOVE": "array, element -> contains_arg",
    "ARRAY_REVERSE": "array -> arg",
    "ARRAY_SLICE": "array, integer, [integer] -> arg",
    "ARRAY_SORT": "array, [boolean], [boolean] -> arg",
    "ARRAY_UNION": "same_array, same_array -> same",
    "MAP_ENTRIES": "map -> entries",
    "MAP_FROM_ARRAYS": "array, array -> map",
    "MAP_KEYS": "map -> keys",
    "MAP_UNION": "same_map, same_map* -> same",
    "MAP_VALUES": "map -> values",
    # JSON
    "JSON_VALUE": "string, path -> STRING?",
    "JSON_QUERY": "string, path -> STRING?",
    "JSON_EXISTS": "string, path -> BOOLEAN?",
    "JSON_OBJECT": "any* -> STRING",
    "JSON_ARRAY": "any* -> STRING",
    "JSON_STRING": "any -> STRING",
    "JSON_QUOTE": "string -> STRING",
    "JSON_UNQUOTE": "string -> STRING",
    "JSON": "string -> STRING",
}
# other names of the same function
SYNONYMS = {
    "CHARACTER_LENGTH": "CHAR_LENGTH",
    "LENGTH": "CHAR_LENGTH",
    "SUBSTRING": "SUBSTR",
    "CEILING": "CEIL",
}
# YEAR(x) is EXTRACT(YEAR FROM x)
EXTRACTS = {
    **{u: u for u in ("YEAR", "QUARTER", "MONTH", "WEEK", "HOUR", "MINUTE", "SECOND")},
    "DAYOFYEAR": "DOY",
    "DAYOFMONTH": "DAY",
    "DAYOFWEEK": "DOW",
}
_ROUNDED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
UNITS_OF = {
    "EXTRACT": (*EXTRACTS.values(), "MILLISECOND", "EPOCH"),
    "FLOOR": _ROUNDED,
    "CEIL": _ROUNDED,
    "TIMESTAMPADD": ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
    "TIMESTAMPDIFF": ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
    "TRIM": ("BOTH", "LEADING", "TRAILING"),
}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# the aggregate functions that a query may call, beside GROUP BY or without
GROUP_FUNCTIONS: dict[str, AggregateFunction] = {
    "COUNT": "COUNT",
    "SUM": "SUM",
    "MIN": "MIN",
    "MAX": "MAX",
    "AVG": "AVG",
    "STDDEV_POP": "STDDEV_POP",
    "STDDEV_SAMP": "STDDEV_SAMP",
    "STDDEV": "STDDEV_SAMP",
    "VAR_POP": "VAR_POP",
    "VAR_SAMP": "VAR_SAMP",
    "VARIANCE": "VAR_SAMP",
    "FIRST_VALUE": "FIRST_VALUE",
    "LAST_VALUE": "LAST_VALUE",
    "LISTAGG": "LISTAGG",
    "ARRAY_AGG": "ARRAY_AGG",
}
VARIANCES: tuple[AggregateFunction, ...] = ("STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP")
# their results go by the order in which values came
BY_ARRIVAL: tuple[AggregateFunction, ...] = ("FIRST_VALUE", "LAST_VALUE", "LISTAGG", "ARRAY_AGG")
AGGREGATES = _names(
    """COLLECT GROUPING GROUPING_ID GROUP_ID CUME_DIST PERCENT_RANK NTILE
    LEAD LAG RANK DENSE_RANK ROW_NUMBER JSON_ARRAYAGG JSON_OBJECTAGG APPROX_COUNT_DISTINCT SUM0
    PERCENTILE SINGLE_VALUE"""
)
WINDOWS = _names(
    """TUMBLE HOP SESSION CUMULATE TUMBLE_START TUMBLE_END TUMBLE_ROWTIME TUMBLE_PROCTIME HOP_START
    HOP_END HOP_ROWTIME HOP_PROCTIME SESSION_START SESSION_END SESSION_ROWTIME
    SESSION_PROCTIME"""
)
# a replay after a failure must compute the same rows, and these would not
UNREPEATABLE = _names(
    """CURRENT_TIMESTAMP CURRENT_ROW_TIMESTAMP CURRENT_DATE CURRENT_TIME LOCALTIME LOCALTIMESTAMP
    NOW UUID RAND RAND_INTEGER CURRENT_WATERMARK"""
)
BITMAPS = _names(
    """BITMAP_AND BITMAP_ANDNOT BITMAP_BUILD BITMAP_CARDINALITY BITMAP_FROM_BYTES BITMAP_OR
    BITMAP_TO_ARRAY BITMAP_TO_BYTES BITMAP_TO_STRING BITMAP_XOR"""
)
# of types that rejoin does not have: VARIANT and structured types
UNTYPED = _names("PARSE_JSON TRY_PARSE_JSON OBJECT_OF OBJECT_UPDATE TYPEOF")

_KINDS: dict[str, tuple[str, ...]] = {
    "string": ("STRING",),
    "integer": data_types.INTEGERS,
    "constant": data_types.INTEGERS,
    "numeric": data_types.NUMERIC,
    "number_or_time": (*data_types.NUMERIC, *data_types.TIMESTAMPS, "DATE"),
    "text_or_integer": ("STRING", *data_types.INTEGERS),
    "bytes": ("BYTES",),
    "array": ("ARRAY",),
    "array_of_texts": ("ARRAY",),
    "same_array": ("ARRAY",),
    "same_map": ("MAP",),
    "map": ("MAP",),
    "path": ("STRING",),
    "boolean": ("BOOLEAN",),
    "timestamp": data_types.TIMESTAMPS,
    "date_or_timestamp": (*data_types.TIMESTAMPS, "DATE"),
    "datetime": data_types.DATETIMES,
    "collection": ("ARRAY", "MAP"),
}
_PLAIN = {
    t.name: t for t in (data_types.STRING, data_types.INT, data_types.BIGINT, data_types.DOUBLE)
} | {
    "BOOLEAN": data_types.BOOLEAN,
    "contains": data_types.BOOLEAN,
    "BYTES": data_types.BYTES,
    "ARRAY<STRING>": DataType("ARRAY", element=data_types.STRING),
    "MAP<STRING, STRING>": DataType("MAP", key=data_types.STRING, element=data_types.STRING),
    "DATE": data_types.DATE,
    "TIMESTAMP(3)": data_types.timestamp(3),
    "TIMESTAMP_LTZ(3)": data_types.timestamp_ltz(3),
}


class FunctionError(Exception):
    """A call that does not fit its signature; `argument` is the wrong one, if it is one."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.argument = argument


@dataclass(frozen=True, slots=True)
class Signature:
    """A parsed line of SIGNATURES."""

    name: str
    kinds: tuple[str, ...]
    required: int
    repeats: bool
    result: str
    always_nullable: bool

    def kind(self, index: int) -> str:
        return self.kinds[min(index, len(self.kinds) - 1)]

    def check_count(self, count: int) -> None:
        most = None if self.repeats else len(self.kinds)
        if count < self.required or (most is not None and count > most):
            bounds = f"{self.required}" if most == self.required else f"{self.required} to {most}"
            wanted = f"at least {self.required}" if most is None else bounds
            raise FunctionError(f"{self.name} takes {wanted} arguments, not {count}")

    def check(self, index: int, arg: Expr, array: DataType) -> None:
        """Whether an argument is of the kind that stands at its place.

        `array`: the type of the first argument, whose element another may have to be.
        """
        kind = self.kind(index)
        allowed = _KINDS.get(kind)
        if kind == "unit":
            units = UNITS_OF[self.name]
            if not (isinstance(arg, Literal) and arg.value in units):
                raise FunctionError(f"{self.name} takes one of {', '.join(units)}", index)
        elif allowed is not None and arg.type.name not in (*allowed, "NULL"):
            raise FunctionError(
                f"argument {index + 1} of {self.name} is {arg.type.sql()}, not {_words(kind)}",
                index,
            )
        elif kind == "element" and not _is_element(array, arg.type):
            element = array.element.sql() if array.element else "NULL"
            raise FunctionError(
                f"argument {index + 1} of {self.name} is {arg.type.sql()}, not {element}", index
            )
        elif kind in ("constant", "path") and not isinstance(arg, Literal):
            raise FunctionError(f"argument {index + 1} of {self.name} must be a constant", index)

    def same(self, args: Sequence[Expr]) -> DataType | None:
        """The common type of the `same` arguments; None if there are none."""
        found: DataType | None = None
        for index, arg in enumerate(args):
            if not self.kind(index).startswith("same"):
                continue
            merged = arg.type if found is None else common_type(found, arg.type)
            if merged is None:
                raise FunctionError(
                    f"argument {index + 1} of {self.name} is {arg.type.sql()}, which does not go"
                    f" with {found.sql() if found else 'it'}",
                    index,
                )
            found = merged
        return found

    def result_type(self, args: Sequence[Expr]) -> DataType:
        nullable = self.always_nullable or any(a.type.nullable for a in args)
        if self.result in ("contains", "contains_arg", "appended"):
            nullable = args[0].type.nullable
        if self.result == "coalesce":
            nullable = all(a.type.nullable for a in args)
        return with_nullable(self._bare_result(args), nullable)

    def _bare_result(self, args: Sequence[Expr]) -> DataType:
        match self.result:
            case "arg" | "contains_arg":
                return args[0].type
            case "appended" | "element" | "keys" | "values" | "entries" | "map" as what:
                return _of_collection(what, args)
            case "last":
                return args[-1].type
            case "same" | "coalesce":
                return self.same(args) or data_types.NULL
            case "mod":
                return args[1].type
            case "round":
                return _rounded(args)
            case "floor":
                found = args[0].type
                return data_types.decimal(digits(found)[0], 0) if found.name == "DECIMAL" else found
            case name:
                return _PLAIN[name]


def _is_element(array: DataType, type_: DataType) -> bool:
    element = array.element
    merged = None if element is None else common_type(element, type_)
    return merged is not None and element is not None and same_type(merged, element)


def _of_collection(what: str, args: Sequence[Expr]) -> DataType:
    first = args[0].type
    element, key = first.element or data_types.NULL, first.key or data_types.NULL
    match what:
        case "element":
            return element
        case "appended":
            nullable = element.nullable or args[1].type.nullable
            return DataType("ARRAY", element=with_nullable(element, nullable))
        case "map":
            return DataType("MAP", key=element, element=args[1].type.element)
        case "entries":
            fields = (RowField("key", key), RowField("value", element))
            return DataType("ARRAY", element=DataType("ROW", nullable=False, fields=fields))
        case _:
            return DataType("ARRAY", element=key if what == "keys" else element)


def _words(kind: str) -> str:
    return {"number_or_time": "a number or a timestamp", "constant": "a whole number"}.get(
        kind, f"of kind {kind}"
    )


def _rounded(args: Sequence[Expr]) -> DataType:
    source = args[0].type
    if source.name != "DECIMAL":
        return source
    places = args[1].value if len(args) > 1 and isinstance(args[1], Literal) else 0
    kept = max(int(places or 0), 0)
    precision, scale = digits(source)
    if kept >= scale:
        return source
    return data_types.decimal(min(precision - scale + 1 + kept, data_types.MAX_DECIMAL), kept)


def _parse(name: str, text: str) -> Signature:
    left, _, result = text.partition("->")
    kinds = [k.strip() for k in left.split(",") if k.strip()]
    return Signature(
        name,
        tuple(k.strip("[]*") for k in kinds),
        sum(not k.startswith("[") and not k.endswith("*") for k in kinds),
        any(k.endswith("*") for k in kinds),
        result.strip().rstrip("?"),
        result.strip().endswith("?"),
    )


FUNCTIONS = {name: _parse(name, text) for name, text in SIGNATURES.items()}


def is_built_in(name: str) -> bool:
    """Whether SQL has a function of this name in upper case."""
    return any(name in known for known in (FUNCTIONS, SYNONYMS, EXTRACTS, GROUP_FUNCTIONS))
