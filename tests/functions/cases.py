# ruff: noqa: E501 - an expression stands in one line
"""Which calls are compared with Flink, and of which arguments; `$1` is the first.

A row in which every argument is NULL is added to each.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Calls:
    """An expression, the types of its arguments and their values."""

    expression: str
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def _calls(types: str, rows: Iterable[tuple[Any, ...]], *expressions: str) -> Iterator[Calls]:
    names = tuple(types.split())
    for expression in expressions:
        yield Calls(expression, names, (*rows, (None,) * len(names)))


_WORDS = [("hello wORLD-x 1st",), ("",), ("Straße é",), ("a/b\"c\\d'e\n",)]
_ANGLES = [(0.5,), (0.0,), (-1.0,), (3.0,)]
_JSONS = [
    ('{"a": {"b": [1, 2.50, "x", null, true]}, "c d": 1e2, "z": [{"k": 1}, {"k": 2}, {}]}',),
    ("[1, [2, 3]]",),
    ('"text"',),
    ("{broken",),
    ("",),
    ("null",),
]
_STAMPS = [("2024-02-29 23:59:59.999",), ("1970-12-31 00:00:00.001",), ("2024-01-01 00:00:00",)]
_PAIRS = [
    ("2024-01-31 10:00:00", "2024-02-29 10:00:00"),
    ("2024-01-31 10:00:00", "2024-03-31 09:59:59"),
    ("2024-03-31 09:00:00", "2024-01-31 10:00:00"),
    ("1969-05-05 00:00:00", "2024-05-05 00:00:00"),
]
_ARRAYS = [(3, 1, 2), (1, None, 1), (7, 7, 7), (None, 5, 3)]
_ARRAY = "ARRAY[$1, $2, $3]"
_TEXTS_TEXTS = [("banana", "an"), ("banana", ""), ("", "a"), ("a.b.c", "."), ("é-é", "é")]
_REGEXPS = [("100-200", r"(\d+)-(\d+)"), ("aXbXc", "X"), ("abc", "["), ("", "x*"), ("hé", ".")]
_JSON_CALLS = [
    f"JSON_{name}"
    for path in (
        "$",
        "$.a",
        "$.a.b",
        "$.a.b[1]",
        "$.a.b[3]",
        "$.a.b[-1]",
        "$.a.b[9]",
        "$['c d']",
        "$.nope",
        "$.nope.more",
        "$.z[*].k",
        "$..k",
        "$[1]",
        "$[0]",
        "$.z[0:2]",
        "$.a.b[0,2]",
        "$.*",
    )
    for mode in ("lax ", "strict ", "")
    for name in (
        f"VALUE($1, '{mode}{path.replace(chr(39), chr(39) * 2)}' DEFAULT 'empty' ON EMPTY DEFAULT 'error' ON ERROR)",
        f"QUERY($1, '{mode}{path.replace(chr(39), chr(39) * 2)}' EMPTY OBJECT ON EMPTY EMPTY ARRAY ON ERROR)",
        f"EXISTS($1, '{mode}{path.replace(chr(39), chr(39) * 2)}' UNKNOWN ON ERROR)",
    )
]

CASES: tuple[Calls, ...] = (
    *_calls(
        "STRING",
        _WORDS,
        *(
            f"{name}($1)"
            for name in [
                "UPPER",
                "LOWER",
                "CHAR_LENGTH",
                "REVERSE",
                "TRIM",
                "LTRIM",
                "RTRIM",
                "BTRIM",
                "INITCAP",
                "ASCII",
                "TO_BASE64",
                "HEX",
                "MD5",
                "SHA1",
                "SHA224",
                "SHA256",
                "SHA384",
                "SHA512",
                "URL_ENCODE",
                "URL_DECODE",
                "JSON_QUOTE",
                "JSON_UNQUOTE",
                "JSON_STRING",
                "IS_ALPHA",
                "IS_DIGIT",
                "IS_DECIMAL",
            ]
        ),
        "SHA2($1, 224)",
        "SHA2($1, 512)",
        "TRANSLATE($1, 'lo/', '01')",
        "REPEAT($1, 2)",
        "LEFT($1, 3)",
        "RIGHT($1, 3)",
        "LPAD($1, 6, '*-')",
        "RPAD($1, 6, '*-')",
        "OVERLAY($1 PLACING 'ZZ' FROM 3)",
        "OVERLAY($1 PLACING 'ZZ' FROM 3 FOR 4)",
        "OVERLAY($1 PLACING 'ZZ' FROM 0 FOR 1)",
        "SUBSTRING($1 FROM 2 FOR 3)",
        "DECODE(ENCODE($1, 'UTF-16BE'), 'UTF-16BE')",
        "STARTSWITH($1, 'hel')",
        "ENDSWITH($1, 'é')",
        "CONCAT($1, '-', $1)",
        "CONCAT_WS('-', $1, 'x')",
        "$1 || '!'",
        "REPLACE($1, 'l', 'LL')",
        "PRINTF('%s|%5s', $1, $1)",
        "JSON_OBJECT('k' VALUE $1, 'b' VALUE JSON_ARRAY($1, 1, TRUE NULL ON NULL) ABSENT ON NULL)",
        "JSON_OBJECT(KEY 'k' VALUE $1)",
        "JSON_ARRAY($1, 'x')",
        "CONCAT(TRIM(BOTH 'h' FROM $1), TRIM(TRAILING 't' FROM $1))",
        "COALESCE($1, 'nothing')",
        "IFNULL($1, 'nothing')",
        "NULLIF($1, '')",
        "IF($1 = '', 1, 2)",
        "GREATEST($1, 'i')",
        "LEAST($1, 'i')",
        "$1 LIKE 'h%'",
        "$1 SIMILAR TO 'h(e|x)l+o%'",
        "$1 SIMILAR TO '[A-Za-z]+ß%'",
        "$1 NOT SIMILAR TO '%[[:DIGIT:]]%'",
    ),
    *_calls("STRING", [("42",), (" -1.5e3 ",), ("12a",), ("٣",)], "IS_DECIMAL($1)", "IS_DIGIT($1)"),
    *_calls("STRING", [("abc",), ("Äß",), ("é1",), ("a b",)], "IS_ALPHA($1)"),
    *_calls("STRING", [("aGVsbG8=",), ("",), ("w58=",)], "FROM_BASE64($1)"),
    *_calls("STRING", [("616263",), ("4a",), ("xyz",), ("",)], "DECODE(UNHEX($1), 'UTF-8')"),
    *_calls(
        "STRING",
        [("a%20b+c",), ("%zz",), ("plain",), ("%C3%A9",)],
        "URL_DECODE($1)",
        "URL_ENCODE($1)",
    ),
    *_calls(
        "STRING", [('"a\\u00e9"',), ('"x',), ("x",), ('""',), ('"a\\"b"',)], "JSON_UNQUOTE($1)"
    ),
    *_calls(
        "STRING",
        [("127.0.0.1",), ("255.255.255.255",), ("1.2",), ("256.1.1.1",), ("abc",), ("",)],
        "INET_ATON($1)",
    ),
    *_calls("BIGINT", [(2130706433,), (0,), (-1,), (4294967296,)], "INET_NTOA($1)"),
    *_calls(
        "STRING STRING",
        _TEXTS_TEXTS,
        "POSITION($2 IN $1)",
        "INSTR($1, $2)",
        "LOCATE($2, $1)",
        "LOCATE($2, $1, 3)",
        "SPLIT_INDEX($1, $2, 1)",
        "CARDINALITY(SPLIT($1, $2))",
        "ARRAY_JOIN(SPLIT($1, $2), '|')",
        "BTRIM($1, $2)",
        "LTRIM($1, $2)",
        "RTRIM($1, $2)",
        "STARTSWITH($1, $2)",
        "ENDSWITH($1, $2)",
        "TRANSLATE($1, $2, 'x')",
        "ELT(2, $1, $2)",
        "REPLACE($1, $2, 'x')",
    ),
    *_calls(
        "STRING STRING",
        _REGEXPS,
        "REGEXP_COUNT($1, $2)",
        "REGEXP_INSTR($1, $2)",
        "REGEXP_SUBSTR($1, $2)",
        "ARRAY_JOIN(REGEXP_EXTRACT_ALL($1, $2), '|', 'null')",
        "ARRAY_JOIN(REGEXP_EXTRACT_ALL($1, $2, 0), '|', 'null')",
    ),
    *_calls(
        "STRING STRING",
        [row for row in _REGEXPS if row[1] != "["],
        "REGEXP($1, $2)",
        "REGEXP_REPLACE($1, $2, '_')",
        "REGEXP_EXTRACT($1, $2)",
    ),
    *_calls(
        "STRING",
        [("a=1,b=2",), ("a",), ("",), ("a=1,a=2,c=",)],
        "STR_TO_MAP($1)['a']",
        "CARDINALITY(STR_TO_MAP($1))",
        "STR_TO_MAP($1, ';', ',')['a=1']",
        "ARRAY_JOIN(ARRAY_SORT(MAP_KEYS(STR_TO_MAP($1))), '|')",
        "CARDINALITY(MAP_ENTRIES(STR_TO_MAP($1)))",
        "CARDINALITY(MAP_VALUES(STR_TO_MAP($1)))",
        "ARRAY_JOIN(ARRAY_SORT(MAP_VALUES(MAP_UNION(STR_TO_MAP($1), MAP['a', 'z']))), '|')",
    ),
    *_calls(
        "STRING",
        [("http://u:p@h.com:8/p/q.php?k1=v1&k2=v2#R",), ("nonsense",), ("http://h.com",)],
        *(
            f"PARSE_URL($1, '{part}')"
            for part in [
                "HOST",
                "PATH",
                "QUERY",
                "REF",
                "PROTOCOL",
                "AUTHORITY",
                "FILE",
                "USERINFO",
                "OTHER",
            ]
        ),
        "PARSE_URL($1, 'QUERY', 'k2')",
        "PARSE_URL($1, 'HOST', 'k2')",
    ),
    *_calls(
        "INT",
        [(-5,), (0,), (7,), (353,), (2147483647,)],
        "BIN($1)",
        "HEX($1)",
        "CHR($1)",
        "ABS($1)",
        "SIGN($1)",
        "MOD($1, 3)",
        "ROUND($1, -1)",
        "TRUNCATE($1, -1)",
        "ELT($1, 'a', 'b', 'c', 'd', 'e', 'f', 'g')",
        "$1 BETWEEN SYMMETRIC 7 AND -5",
        "$1 IN (0, 7) IS TRUE",
        "JSON_STRING($1)",
        "JSON_STRING(ARRAY[$1, 2])",
        "FROM_UNIXTIME($1)",
        "CAST(TO_TIMESTAMP_LTZ($1, 0) AS STRING)",
        "COALESCE($1, 1)",
    ),
    *_calls(
        "DOUBLE",
        _ANGLES,
        *(
            f"{name}($1)"
            for name in [
                "SIN",
                "COS",
                "TAN",
                "ASIN",
                "ACOS",
                "ATAN",
                "SINH",
                "COSH",
                "TANH",
                "DEGREES",
                "RADIANS",
                "EXP",
                "SQRT",
                "LN",
                "LOG10",
                "LOG2",
                "LOG",
                "COT",
                "FLOOR",
                "CEIL",
                "ROUND",
                "ABS",
                "SIGN",
            ]
        ),
        "LOG(2, $1)",
        "ATAN2($1, 2)",
        "POWER($1, 2)",
        "TRUNCATE($1, 1)",
        "TRUNCATE($1 * 1.23456, 2)",
        "PI() * $1",
        "E() + $1",
        "JSON_STRING($1)",
    ),
    *_calls(
        "DECIMAL",
        [("12.35",), ("-12.35",), ("0.00",), ("99999999.99",)],
        "TRUNCATE($1, 1)",
        "TRUNCATE($1)",
        "TRUNCATE($1, -1)",
        "ROUND($1, 1)",
        "FLOOR($1)",
        "CEIL($1)",
        "SIN($1)",
        "LOG10(ABS($1) + 1)",
        "JSON_STRING($1)",
        "SIGN($1)",
    ),
    *_calls(
        "TIMESTAMP",
        _STAMPS,
        *(
            f"CAST({name}($1 TO {unit}) AS STRING)"
            for name in ("FLOOR", "CEIL")
            for unit in ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"]
        ),
        *(
            f"EXTRACT({unit} FROM $1)"
            for unit in [
                "YEAR",
                "QUARTER",
                "MONTH",
                "WEEK",
                "DAY",
                "DOY",
                "DOW",
                "HOUR",
                "MINUTE",
                "SECOND",
                "MILLISECOND",
                "EPOCH",
            ]
        ),
        "DATE_FORMAT($1, 'yyyy/MM/dd HH:mm')",
        "CAST(TIMESTAMPADD(MONTH, 1, $1) AS STRING)",
        "CAST(CEIL(CAST($1 AS TIMESTAMP_LTZ(3)) TO HOUR) AS STRING)",
        "CAST(CEIL(CAST($1 AS DATE) TO MONTH) AS STRING)",
        "CAST(FLOOR(CAST($1 AS DATE) TO YEAR) AS STRING)",
    ),
    *_calls(
        "TIMESTAMP TIMESTAMP",
        _PAIRS,
        *(
            f"TIMESTAMPDIFF({unit}, $1, $2)"
            for unit in ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE"]
        ),
        "TIMESTAMPDIFF(MONTH, CAST($1 AS DATE), CAST($2 AS DATE))",
    ),
    *_calls(
        "STRING",
        [("2024-07-01 12:30:00",), ("2024-07-01",), ("nonsense",), ("1970-01-01 00:00:00.5",)],
        "CONVERT_TZ($1, 'UTC', 'America/Los_Angeles')",
        "UNIX_TIMESTAMP($1)",
        "UNIX_TIMESTAMP($1, 'yyyy-MM-dd')",
        "CAST(TO_DATE($1) AS STRING)",
        "CAST(TO_TIMESTAMP($1) AS STRING)",
    ),
    *_calls(
        "INT INT INT",
        _ARRAYS,
        *(
            f"JSON_STRING({call})"
            for call in (
                f"ARRAY_APPEND({_ARRAY}, $1)",
                f"ARRAY_PREPEND({_ARRAY}, $1)",
                f"ARRAY_CONCAT({_ARRAY}, ARRAY[$3])",
                f"ARRAY_DISTINCT({_ARRAY})",
                f"ARRAY_EXCEPT({_ARRAY}, ARRAY[$3])",
                f"ARRAY_INTERSECT({_ARRAY}, ARRAY[$1, $3])",
                f"ARRAY_UNION({_ARRAY}, ARRAY[$3, 9])",
                f"ARRAY_REMOVE({_ARRAY}, $1)",
                f"ARRAY_REVERSE({_ARRAY})",
                f"ARRAY_SLICE({_ARRAY}, 2)",
                f"ARRAY_SLICE({_ARRAY}, 0, 2)",
                f"ARRAY_SLICE({_ARRAY}, -2, -1)",
                f"ARRAY_SLICE({_ARRAY}, -9, 9)",
                f"ARRAY_SLICE({_ARRAY}, 3, 2)",
                f"ARRAY_SORT({_ARRAY})",
                f"ARRAY_SORT({_ARRAY}, FALSE)",
                f"ARRAY_SORT({_ARRAY}, TRUE, FALSE)",
            )
        ),
        f"ARRAY_CONTAINS({_ARRAY}, $1)",
        f"ARRAY_CONTAINS({_ARRAY}, 5)",
        f"ARRAY_MAX({_ARRAY})",
        f"ARRAY_MIN({_ARRAY})",
        f"ARRAY_POSITION({_ARRAY}, $3)",
        f"CARDINALITY({_ARRAY})",
        "ELEMENT(ARRAY[$1])",
        "MAP_VALUES(MAP_FROM_ARRAYS(ARRAY['a', 'b'], ARRAY[$1, $2]))[2]",
        f"JSON_STRING({_ARRAY})",
    ),
    *_calls(
        "STRING",
        _JSONS,
        "$1 IS JSON",
        "$1 IS JSON OBJECT",
        "$1 IS JSON ARRAY",
        "$1 IS NOT JSON SCALAR",
        "JSON_VALUE($1, 'lax $.a.b[0]' RETURNING INT)",
        "JSON_VALUE($1, 'lax $.a.b[4]' RETURNING BOOLEAN)",
        "JSON_VALUE($1, 'lax $.a.b[1]' RETURNING DOUBLE)",
        "JSON_EXISTS($1, 'strict $.q')",
        "JSON_EXISTS($1, 'strict $.q' TRUE ON ERROR)",
        "JSON_QUERY($1, 'lax $' WITH WRAPPER)",
        "JSON_QUERY($1, 'lax $' WITH CONDITIONAL ARRAY WRAPPER)",
        "JSON_QUERY($1, 'strict $.a.b[0]' WITH CONDITIONAL ARRAY WRAPPER)",
        *_JSON_CALLS,
    ),
    *_calls(
        "INT BOOLEAN",
        [(1, True), (None, False), (2, None)],
        "JSON_OBJECT('z' VALUE $1, 'a' VALUE $2)",
        "JSON_ARRAY($1, $2 NULL ON NULL)",
        "JSON_STRING($2)",
        "JSON_STRING(ROW($1, $2))",
    ),
    *_calls("STRING", _WORDS, "CHARACTER_LENGTH($1)", "SUBSTR($1, 2)", "SUBSTR($1, 2, 3)"),
    *_calls("DOUBLE", [(0.5,), (-1.5,), (2.0,)], "CEILING($1)"),
    *_calls("TIMESTAMP", _STAMPS, "DAYOFMONTH($1)", "DAYOFWEEK($1)", "DAYOFYEAR($1)"),
    *_calls("STRING", [("12",), ("x",), ("-3",)], "TRY_CAST($1 AS INT)"),
    *_calls(
        "INT",
        [(1,), (2,), (3,)],
        "CASE $1 WHEN 1 THEN 'one' WHEN 2 THEN 'two' END",
        "CASE WHEN $1 < 3 THEN CURRENT_DATABASE() END",
    ),
)
