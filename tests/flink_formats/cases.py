"""Records of formats whose rules are in Flink's code alone, and rows to write with them.

`flink.json` has what a real Flink makes of each case, in their order.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

Columns: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Reads:
    """Records of one table. `metadata` are columns with the keys of Flink's format as names."""

    format: str
    columns: Columns
    values: Sequence[bytes]
    options: Mapping[str, str] = field(default_factory=dict)
    metadata: Columns = ()


@dataclass(frozen=True)
class Writes:
    """Rows, as JSON, that go into one table, each with its kind."""

    format: str
    columns: Columns
    rows: Sequence[tuple[str, Mapping[str, Any]]]
    options: Mapping[str, str] = field(default_factory=dict)


_PAIR = (("a", "INT"), ("b", "STRING"))
_LENIENT = {"ignore-parse-errors": "true"}
_LINES = [
    b"1,x", b"1,x\n2,y", b"1,x\r\n", b"", b"\n", b" ", b"1", b"1,", b"1,x,", b"1,x, ", b"1,x,,",
    b"1,x,y", b" 1 ,x ", b'1,"a,b"', b'1,"a""b"', b'1,"a" ', b'1,"a"b', b'1,"a', b'1,a"b', b",x",
    b"x,y", b"\xef\xbb\xbf1,x", b"1,\xff", b'1,"a\nb"', b'"1","x"', b"#1,x", b"\n1,x", b'1, "q"',
    b"2147483648,x", b"1.0,x", b"+1,x", "1,ä☃𝄞".encode(), b'"1"x', b'"', b'""', b'1,""',
]  # fmt: skip
_FIELDS: Mapping[str, Sequence[bytes]] = {
    "BOOLEAN": [b"true", b" TRUE ", b"x", b"", b"1"],
    "TINYINT": [b"128", b" 5 ", b"-128"],
    "SMALLINT": [b"32767", b"1e3"],
    "BIGINT": [b"9223372036854775807", b"9223372036854775808"],
    "FLOAT": [b"1e40", b"0.1"],
    "DOUBLE": [b" 1.5 ", b"1d", b"", b"0x1p3", b"x"],
    "DECIMAL(4,2)": [b"1.005", b"123.4", b" 1", b"1E1", b"-0.001", b"+3", b"x"],
    "DATE": [b"2020-02-30", b"2020-2-3", b" 2020-02-03", b"2020-13-01", b"1969-12-31"],
    "TIME": [b"10:00", b"10:00:00.5", b"10:00:00"],
    "TIME(3)": [b"10:00:00.1239", b" 10:00:00"],
    "TIMESTAMP(3)": [b"2020-01-01 10:00:00", b" 2020-01-01 10:00:00.123 ", b"2020-01-01T10:00:00"],
    "TIMESTAMP_LTZ(3)": [b"2020-01-01 10:00:00Z", b"2020-01-01 10:00:00", b"2020-01-01T10:00:00Z"],
    "BYTES": [b"AP8Q", b"AP8=", b"AP8", b"*", b"", b"AP 8="],
    "ARRAY<INT>": [b"1;2", b"", b" ", b"1;;2", b"1;", b";", b"1;x"],
    "ARRAY<STRING>": [b"a;b", b";", b"a; b", b"", b'"a;b"', b'"a;b";c'],
    "ROW<x INT, y STRING>": [b"1;a", b"1", b"1;a;b", b"", b";", b" 2 ;"],
}
_NULLS = [b"n/a", b"n/a;1", b'"n/a"', b"bad", b""]
_OPTIONS: Sequence[tuple[Mapping[str, str], Sequence[bytes]]] = [
    ({"field-delimiter": "|"}, [b"1|x,y"]),
    ({"field-delimiter": "\\t"}, [b"1\tx", b'1\t"x"\t']),
    ({"field-delimiter": "\\u0001"}, [b"1\x01x"]),
    ({"field-delimiter": " "}, [b"1 x"]),
    ({"field-delimiter": " ", "trim-spaces": "true"}, [b"1 x"]),
    ({"disable-quote-character": "true"}, [b'1,"x"']),
    ({"quote-character": "'"}, [b"1,'a,b'"]),
    (
        {"escape-character": "\\"},
        [b"1,a\\,b", b'1,"a\\"b"', b"1,\\nx", b"1,a\\", b"1,\\x\\0\\t\\r", b"\\1,x"],
    ),
    ({"allow-comments": "true"}, [b"#c\n1,x", b"#c", b"  \n 1, x", b"1,#x"]),
    ({"trim-spaces": "true"}, [b" 1 , x , ", b' 1 , " x " ', b"1,\tx\t", b"1, "]),
    ({"ignore-trailing-unmappable": "true"}, [b"1,x,y,z", b'1,x,"y', b"1"]),
    ({"allow-trailing-comma": "false"}, [b"1,x,", b"1,x"]),
    ({"fail-on-missing-columns": "true"}, [b"1", b"1,"]),
    ({"fail-on-missing-columns": "true", **_LENIENT}, [b"1", b"x,"]),
    ({"empty-string-as-null": "true"}, [b",", b'1,""', b"1, "]),
    ({"null-literal": ""}, [b",", b'1,""']),
    ({"null-literal": "NULL"}, [b'NULL,"NULL"', b" NULL,x"]),
    ({"null-literal": "NULL", "trim-spaces": "true"}, [b" NULL , x"]),
    (_LENIENT, [b"", b"1", b"x,y", b"1,x,y", b'1,"a', b"\n", b"1,\xff"]),
]
_ARRAY = (("c", "ARRAY<STRING>"), ("z", "STRING"))
_ARRAY_OPTIONS: Sequence[tuple[Mapping[str, str], Sequence[bytes]]] = [
    ({"array-element-delimiter": "|"}, [b"a|b;c,z"]),
    ({"empty-string-as-null": "true"}, [b"a;;b,z", b",z"]),
    ({"null-literal": ""}, [b",z", b"a;;b,z"]),
    ({"trim-spaces": "true"}, [b" a ; b ,z"]),
    ({"null-literal": "n"}, [b"n,z", b"a;n,z"]),
]
_VALUES: Mapping[str, Sequence[Any]] = {
    "INT": [1, -5, None],
    "BIGINT": [2**40],
    "STRING": ["a", "", 'a"b', "a b", "a,b", "a\nb", "x" * 24, "x" * 25, "ä☃", "-", "#x", None],
    "DOUBLE": [1.5, 1e20, 1e-5],
    "FLOAT": [0.1],
    "BOOLEAN": [True],
    "DECIMAL(20,9)": ["0.000000027", "100", "0", "1.50", "-1.5"],
    "DECIMAL(38,10)": ["1234567890123456789012345678.9"],
    "DATE": ["2020-02-29"],
    "TIME": ["10:00:00"],
    "TIMESTAMP(3)": ["2020-01-01 10:00:00.120"],
    "TIMESTAMP_LTZ(3)": ["2020-01-01 10:00:00Z"],
    "BYTES": ["AP8Q", "+/8="],
    "ARRAY<INT>": [[1, None, 2], [], None],
    "ARRAY<STRING>": [["a", "b;c"], ["a b"], ["", ""], [None]],
    "ARRAY<DECIMAL(20,9)>": [["100", "0.000000027", "0"]],
    "ROW<x INT, y STRING>": [{"x": 1, "y": "a"}, {"x": None, "y": None}, None],
}
_WRITING: Sequence[tuple[Mapping[str, str], Sequence[str]]] = [
    ({"field-delimiter": "|"}, ["a", "a b", "~", "a|b", "{"]),
    ({"field-delimiter": "\\t"}, ["a,b", "a\tb", " ", '"', "!", "\x01"]),
    ({"disable-quote-character": "true"}, ["a,b", '"']),
    ({"quote-character": "'"}, ["a'b", 'a"b', "-"]),
    ({"escape-character": "\\"}, ['a"b', "a\\b", "a", "a\nb", "", "x" * 25]),
]


def _csv() -> list[Reads | Writes]:
    texts = (("c", "STRING"),)
    columns = [(f"c{place}", kind) for place, kind in enumerate(_VALUES)]
    rows = [
        ("+I", {f"c{i}": values[n % len(values)] for i, values in enumerate(_VALUES.values())})
        for n in range(max(map(len, _VALUES.values())))
    ]
    return [
        Reads("csv", _PAIR, _LINES),
        *(
            Reads("csv", (("c", kind), ("z", "STRING")), [value + b",z" for value in values])
            for kind, values in _FIELDS.items()
        ),
        Reads(
            "csv",
            [(f"c{place}", kind) for place, kind in enumerate(_FIELDS)],
            [b",".join([value] * len(_FIELDS)) for value in _NULLS],
            {"null-literal": "n/a", **_LENIENT},
        ),
        *(Reads("csv", _PAIR, values, options) for options, values in _OPTIONS),
        *(Reads("csv", _ARRAY, values, options) for options, values in _ARRAY_OPTIONS),
        *(
            Reads("csv", texts, [b"", b"\n", b'""', b" ", b"a,", b" a "], options)
            for options in ({}, {"null-literal": ""}, {"empty-string-as-null": "true"})
        ),
        *(
            Writes("csv", columns, rows, options)
            for options in (
                {},
                {"write-bigdecimal-in-scientific-notation": "true", "null-literal": "n/a"},
            )
        ),
        *(
            Writes("csv", texts, [("+I", {"c": value}) for value in values], options)
            for options, values in _WRITING
        ),
    ]


_PRODUCT = (("id", "INT"), ("name", "STRING"), ("weight", "DOUBLE"))
_CHANGES = [(k, {"id": 1, "name": None, "weight": 2}) for k in ("+I", "-U", "+U", "-D")]


def _record(given: Mapping[str, Any], **other: Any) -> bytes:
    return json.dumps({**given, **other}, ensure_ascii=False).encode()


_CANAL = {
    "data": [{"id": "1", "name": "ä", "weight": "2.5"}], "database": "db", "es": 1589373560000,
    "id": 9, "isDdl": False, "mysqlType": {"id": "INT"}, "old": None, "pkNames": ["id"],
    "sql": "", "sqlType": {"id": 4}, "table": "t", "ts": 1589373560798, "type": "INSERT",
}  # fmt: skip
_CANAL_RECORDS = [
    _record(_CANAL),
    _record(_CANAL, data=[{"id": 1}, {"id": 2, "name": "b"}]),
    _record(_CANAL, data=[]),
    _record(_CANAL, data=[{}]),
    _record(_CANAL, data=None),
    _record(_CANAL, data=[None]),
    _record(_CANAL, data={"id": 1}),
    _record(_CANAL, data=[{"id": "x"}]),
    _record(_CANAL, type="UPDATE", old=[{"weight": "2.0"}]),
    _record(_CANAL, type="UPDATE", old=[{"weight": None}]),
    _record(_CANAL, type="UPDATE", old=[{"weight": None, "name": "b"}], data=[{"id": 1}]),
    _record(_CANAL, type="UPDATE", old=[{"other": 1}]),
    _record(_CANAL, type="UPDATE", old=[{"id": 3}, {"id": 4}], data=[{"id": 1}, {"id": 2}]),
    _record(_CANAL, type="UPDATE", old=[{"weight": 1}, {"weight": 2}]),
    _record(_CANAL, type="UPDATE"),
    _record(_CANAL, type="UPDATE", old=[]),
    _record(_CANAL, type="UPDATE", old=[None]),
    _record(_CANAL, type="DELETE"),
    _record(_CANAL, type="DELETE", data=[{"id": 1}, {"id": 2}], old=[{"id": 0}]),
    _record(_CANAL, type="CREATE", data=None, isDdl=True),
    _record(_CANAL, type="ALTER", data=None, isDdl=True),
    _record(_CANAL, type="TRUNCATE", data=None, isDdl=True),
    _record(_CANAL, type="insert"),
    _record(_CANAL, type=None),
    b"",
    b"{}",
    b"x",
    b"[]",
    b"null",
]
_CANAL_METADATA = (
    ("database", "STRING"), ("table", "STRING"), ("sql-type", "MAP<STRING, INT>"),
    ("pk-names", "ARRAY<STRING>"), ("ingestion-timestamp", "TIMESTAMP_LTZ(3)"),
    ("event-timestamp", "TIMESTAMP_LTZ(3)"),
)  # fmt: skip
_BARE = _record({"type": "INSERT", "data": [{"id": 1}]})


def _canal() -> list[Reads | Writes]:
    read = partial(Reads, "canal-json", _PRODUCT)
    lenient = [
        _record(_CANAL, type="ALTER"),
        _record(_CANAL, data=[{"id": "x"}]),
        _record(_CANAL, type="UPDATE", old=[{"id": "x"}]),
        _record(_CANAL, type="UPDATE"),
        b"x",
    ]
    other = [
        _record(_CANAL),
        _record(_CANAL, database="xdb"),
        _record(_CANAL, database=None),
        _record(_CANAL, database="other", data=[{"id": "x"}]),
        _record(_CANAL, database="other", type="?"),
        _record(_CANAL, database="d1", table="s"),
        _record(_CANAL, database="d1", table="st"),
        _BARE,
    ]
    described = [
        _record(_CANAL),
        _record(_CANAL, type="UPDATE", old=[{"weight": 1}], ts=None, sqlType=None),
        _record(_CANAL, ts="x"),
        _record(_CANAL, ts="17", database=5),
        _BARE,
    ]
    return [
        read(_CANAL_RECORDS),
        read(lenient, _LENIENT),
        read(other, {"database.include": "d.*"}),
        read(other, {"database.include": "db|d1", "table.include": "t|s"}),
        read(described, {}, _CANAL_METADATA),
        Writes("canal-json", _PRODUCT, _CHANGES),
        Writes("canal-json", _PRODUCT, _CHANGES, {"encode.ignore-null-fields": "true"}),
    ]


_MAXWELL = {
    "database": "test", "table": "p", "type": "insert", "ts": 1596684904, "xid": 7201,
    "commit": True, "data": {"id": 1, "name": "ä", "weight": 2.5}, "primary_key_columns": ["id"],
}  # fmt: skip
_MAXWELL_RECORDS = [
    _record(_MAXWELL),
    _record(_MAXWELL, data={"id": "x"}),
    _record(_MAXWELL, data=None),
    _record(_MAXWELL, data=[1]),
    _record(_MAXWELL, type="update", old={"weight": 2}),
    _record(_MAXWELL, type="update", old={"weight": None}),
    _record(_MAXWELL, type="update", old={"name": None}, data={"id": 1, "name": "x"}),
    _record(_MAXWELL, type="update", old={"id": 0}),
    _record(_MAXWELL, type="update", old={"other": 0}),
    _record(_MAXWELL, type="update", old={"weight": "x"}),
    _record(_MAXWELL, type="update", old=[{"weight": 1}]),
    _record(_MAXWELL, type="update", old=None),
    _record(_MAXWELL, type="update"),
    _record(_MAXWELL, type="delete"),
    _record(_MAXWELL, type="bootstrap-insert"),
    _record(_MAXWELL, type="table-create"),
    _record(_MAXWELL, type="INSERT"),
    b"",
    b"{}",
    b"x",
]
_MAXWELL_METADATA = (
    ("database", "STRING"), ("table", "STRING"), ("primary-key-columns", "ARRAY<STRING>"),
    ("ingestion-timestamp", "TIMESTAMP_LTZ(3)"),
)  # fmt: skip


def _maxwell() -> list[Reads | Writes]:
    read = partial(Reads, "maxwell-json", _PRODUCT)
    lenient = [
        _record(_MAXWELL, type="?"),
        _record(_MAXWELL, type="update", old={"weight": "x"}),
        _record(_MAXWELL, type="update"),
        b"x",
    ]
    described = [
        _record(_MAXWELL),
        _record(_MAXWELL, ts=None, database=None, primary_key_columns=None),
        _record(_MAXWELL, ts="x"),
        _record({"type": "insert", "data": {"id": 1}}),
    ]
    return [
        read(_MAXWELL_RECORDS),
        read(lenient, _LENIENT),
        read(described, {}, _MAXWELL_METADATA),
        Writes("maxwell-json", _PRODUCT, _CHANGES),
        Writes("maxwell-json", _PRODUCT, _CHANGES, {"encode.ignore-null-fields": "true"}),
    ]


CASES: list[Reads | Writes] = [*_csv(), *_canal(), *_maxwell()]


def asked(case: Reads | Writes) -> dict[str, Any]:
    """A case as `in_flink.py` reads it."""
    common = {"format": case.format, "columns": case.columns, "options": dict(case.options)}
    match case:
        case Reads():
            values = [value.decode("latin-1") for value in case.values]
            return {**common, "values": values, "metadata": case.metadata}
        case Writes():
            return {**common, "rows": case.rows}
