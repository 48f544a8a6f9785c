"""The functions that Flink 2.3 documents, and what a real Flink was asked of each.

The names are those of Flink's page "System (Built-in) Functions" and of `SHOW FUNCTIONS`, as SQL
writes them; what the Table API alone has is left out.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from spark_jobs.sql.types import functions
from spark_jobs.sql.types.functions import EXTRACTS, FUNCTIONS, GROUP_FUNCTIONS, SYNONYMS

_TESTS = Path(__file__).resolve().parents[1] / "tests"
SCALARS = {
    "numbers": """ABS ACOS ASIN ATAN ATAN2 BIN CEIL CEILING COS COSH COT DEGREES E EXP FLOOR HEX LN
        LOG LOG10 LOG2 MOD PI POWER RADIANS RAND RAND_INTEGER ROUND SIGN SIN SINH SQRT TAN TANH
        TRUNCATE UNHEX UUID""",
    "texts": """ASCII BTRIM CHARACTER_LENGTH CHAR_LENGTH CHR CONCAT CONCAT_WS DECODE ELT ENCODE
        ENDSWITH FROM_BASE64 INET_ATON INET_NTOA INITCAP INSTR LEFT LOCATE LOWER LPAD LTRIM OVERLAY
        PARSE_URL POSITION PRINTF REGEXP REGEXP_COUNT REGEXP_EXTRACT REGEXP_EXTRACT_ALL REGEXP_INSTR
        REGEXP_REPLACE REGEXP_SUBSTR REPEAT REPLACE REVERSE RIGHT RPAD RTRIM SPLIT SPLIT_INDEX
        STARTSWITH STR_TO_MAP SUBSTR SUBSTRING TO_BASE64 TRANSLATE TRIM UPPER URL_DECODE
        URL_ENCODE""",
    "times": """CONVERT_TZ CURRENT_DATE CURRENT_ROW_TIMESTAMP CURRENT_TIME CURRENT_TIMESTAMP
        CURRENT_WATERMARK DATE_FORMAT DAYOFMONTH DAYOFWEEK DAYOFYEAR EXTRACT FROM_UNIXTIME HOUR
        LOCALTIME LOCALTIMESTAMP MINUTE MONTH NOW OVERLAPS QUARTER SECOND TIMESTAMPADD TIMESTAMPDIFF
        TO_DATE TO_TIMESTAMP TO_TIMESTAMP_LTZ UNIX_TIMESTAMP WEEK YEAR""",
    "conditions and types": """CASE CAST COALESCE CURRENT_DATABASE GREATEST IF IFNULL IS_ALPHA
        IS_DECIMAL IS_DIGIT LEAST NULLIF TRY_CAST TYPEOF""",
    "collections": """ARRAY_APPEND ARRAY_CONCAT ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_EXCEPT
        ARRAY_INTERSECT ARRAY_JOIN ARRAY_MAX ARRAY_MIN ARRAY_POSITION ARRAY_PREPEND ARRAY_REMOVE
        ARRAY_REVERSE ARRAY_SLICE ARRAY_SORT ARRAY_UNION CARDINALITY ELEMENT MAP_ENTRIES
        MAP_FROM_ARRAYS MAP_KEYS MAP_UNION MAP_VALUES""",
    "JSON": """JSON_ARRAY JSON_EXISTS JSON_OBJECT JSON_QUERY JSON_QUOTE JSON_STRING JSON_UNQUOTE
        JSON_VALUE PARSE_JSON TRY_PARSE_JSON""",
    "hashes": "MD5 SHA1 SHA2 SHA224 SHA256 SHA384 SHA512",
    "structured types and bitmaps": """OBJECT_OF OBJECT_UPDATE BITMAP_AND BITMAP_ANDNOT BITMAP_BUILD
        BITMAP_CARDINALITY BITMAP_FROM_BYTES BITMAP_OR BITMAP_TO_ARRAY BITMAP_TO_BYTES
        BITMAP_TO_STRING BITMAP_XOR""",
}
AGGREGATES = """ARRAY_AGG AVG COLLECT COUNT CUME_DIST DENSE_RANK FIRST_VALUE GROUPING GROUPING_ID
    GROUP_ID JSON_ARRAYAGG JSON_OBJECTAGG LAG LAST_VALUE LEAD LISTAGG MAX MIN NTILE PERCENTILE
    PERCENT_RANK RANK ROW_NUMBER STDDEV_POP STDDEV_SAMP SUM VARIANCE VAR_POP VAR_SAMP"""
# what the parser or the binder reads by itself, with a grammar of its own
_READ = ("CASE", "CAST", "TRY_CAST", "NULLIF", "CURRENT_DATABASE", "GROUPING", "GROUPING_ID")
_JSON = ("JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_OBJECT", "JSON_ARRAY")
INSTEAD = {
    "COLLECT": "`ARRAY_AGG`",
    "JSON_ARRAYAGG": "`JSON_STRING(ARRAY_AGG(x))`",
    "JSON_OBJECTAGG": "`JSON_STRING(ARRAY_AGG(ROW(key, value)))`",
    "OVERLAPS": "comparisons of both ends",
    "CURRENT_WATERMARK": "late rows are counted, and go to `rejoin.late.topic`",
    "PARSE_JSON": "`JSON_VALUE`, `JSON_QUERY` of the text",
    "TRY_PARSE_JSON": "`JSON_VALUE`, `JSON_QUERY` of the text",
    "ROW_NUMBER": "as Top-N: `ROW_NUMBER() OVER (...)` with a filter on it",
    **dict.fromkeys(functions.UNREPEATABLE, "a time of the record: `METADATA FROM 'timestamp'`"),
    **dict.fromkeys(("RAND", "RAND_INTEGER", "UUID"), "not repeatable"),
    **dict.fromkeys(functions.BITMAPS, "an ARRAY"),
}


def is_taken(name: str) -> bool:
    """Whether rejoin has the function, under this name."""
    return name in (*FUNCTIONS, *SYNONYMS, *EXTRACTS, *GROUP_FUNCTIONS, *_READ, *_JSON)


def is_repeatable(name: str) -> bool:
    """Whether the function gives the same for the same arguments, as a repeated epoch needs it."""
    return name not in functions.UNREPEATABLE


def scalar_names() -> Iterator[str]:
    for names in SCALARS.values():
        yield from names.split()


@cache
def compared() -> dict[str, int]:
    """How many results of a real Flink each scalar function has been compared with."""
    return _counted("functions/flink.json", r"[A-Z][A-Z_0-9]*")


@cache
def compared_aggregates() -> dict[str, int]:
    """The same of aggregate functions, after each change of their input."""
    found = _counted("aggregates/flink.json", r"[A-Z][A-Z_0-9]*(?=\()")
    grouped = sum(len(entry["rows"]) for entry in _recorded("aggregates/grouped.json"))
    return {**found, "GROUPING": grouped, "GROUPING_ID": grouped}


def _counted(file: str, names: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in _recorded(file):
        for name in set(re.findall(names, entry["call"])):
            found[name] = found.get(name, 0) + len(entry.get("results", ()))
    return found


def _recorded(file: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((_TESTS / file).read_text(encoding="utf-8"))
    return entries
