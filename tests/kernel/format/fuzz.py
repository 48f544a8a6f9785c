"""`python -m tests.kernel.format.fuzz --pairs 100000 --seed 1`: broken records, all formats.

Real key and value pairs are damaged in many ways and read. Each must end as rows or as a reject
with a reason that docs/formats.md lists; whatever else leaves the kernel stops the run.
The JVM's heap is measured after a collection at each quarter, and must not grow.
"""

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.debezium.recording import FORMATS, files, records
from tests.debezium.registry import recorded_registry
from tests.debezium.summary import scan_of
from tests.flink_formats.cases import CASES, Reads
from tests.harness.gateway import jvm, kernel
from tests.harness.messages import planned
from tests.kernel.tables import Record, TableScan, feed

ROOT = Path(__file__).parents[3]
BATCH = 100
MOST_GROWTH = 1.2


@dataclass(frozen=True)
class Target:
    """A table and pairs that it can read."""

    name: str
    scan: TableScan
    pairs: Sequence[Record]


@dataclass
class Result:
    """What became of the pairs.

    `silent` gave neither row nor reject; `quiet` are those that may (`may_be_silent`).
    `heap` is in bytes, at each quarter.
    """

    pairs: int
    rows: int
    rejects: Counter[str]
    silent: int
    quiet: int
    heap: list[int]

    @property
    def problems(self) -> list[str]:
        unknown = sorted(set(self.rejects) - reasons())
        found = [f"reason {r} is not in docs/formats.md" for r in unknown]
        if self.silent > self.quiet:
            found.append(f"{self.silent} pairs gave nothing, only {self.quiet} may")
        if self.heap[-1] > self.heap[0] * MOST_GROWTH:
            found.append(f"the heap grew from {self.heap[0]} to {self.heap[-1]} bytes")
        return found


def reasons() -> set[str]:
    """The reasons that docs/formats.md lists."""
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    table = page[page.index("## Why a record is refused") :]
    return set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE))


def targets(registry: str) -> Iterator[Target]:
    """Every file of the recorded run with its own table, and tables of plain formats."""
    for format_ in FORMATS:
        for file in files(format_):
            pairs = [Record(r.value, r.key, r.headers) for r in records(file)]
            yield Target(f"{format_}/{file.stem}", scan_of(file, registry), pairs)
    yield from _plain(registry)


def _plain(registry: str) -> Iterator[Target]:
    orders = [p for p in _pairs("json_unwrapped", "orders") if p.value is not None]
    columns = {"order_id": "string", "price": "decimal(10,2)", "order_time": "timestamp"}
    row = {
        "type": "struct",
        "fields": [{"name": "ts_ms", "type": "long", "nullable": True, "metadata": {}}],
    }
    maps = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
    upsert = TableScan(
        columns, "json", {}, "upsert", key=["order_id"], key_format="json", primary_key=["order_id"]
    )
    yield Target("upsert json", upsert, orders)
    lenient = TableScan({"op": "string", "source": row, "ts_ms": "long", "transaction": maps},
                        "json", {"ignore-parse-errors": "true"})  # fmt: skip
    yield Target("json with a row and a map", lenient, _pairs("json", "orders"))
    yield Target("changelog-json", TableScan(columns, "changelog-json", {}, "retract"), orders)
    for type_ in ("string", "binary", "integer", "long", "double"):
        yield Target(f"raw {type_}", TableScan({"v": type_}, "raw"), orders)
    yield from _of_flink_alone()
    avro = {"url": f"{registry}/avro"}
    keyed = TableScan(
        {"order_id": "string", "op": "string", "ts_ms": "long"}, "avro-confluent", avro, "upsert",
        key=["order_id"], key_format="avro-confluent", key_options=avro, primary_key=["order_id"],
    )  # fmt: skip
    yield Target("upsert avro-confluent", keyed, _pairs("avro", "orders"))
    unwrapped = TableScan(columns, "json", {"timestamp-format.standard": "ISO-8601"}, "upsert",
                          key=["order_id"], key_format="json", primary_key=["order_id"],
                          debezium={"unwrapped": True, "heals": True, "positions": True,
                                    "decimals": "base64"})  # fmt: skip
    yield Target("unwrapped with keys", unwrapped, _pairs("json_unwrapped", "orders"))
    wide = next(f for f in files("json_schema") if f.stem.endswith("public.wide"))
    texts = dict.fromkeys(scan_of(wide, "").columns, "string")
    heals = {"heals": True, "positions": True, "retractsOnTruncate": True}
    all_text = TableScan(texts, "debezium-json", {"schema-include": "true"}, "upsert",
                         primary_key=["id"], debezium=heals)  # fmt: skip
    yield Target("wide as texts", all_text, _pairs("json_schema", "wide"))


def _of_flink_alone() -> Iterator[Target]:
    """Formats of which there are no recordings, but records that Flink was asked about."""
    lines = [Record(b'1,"a, b",2.5,x;y', b"1,a"), Record(b"\xe2\x98\x83,,1e3,", b'"1",""')]
    strings = {"type": "array", "elementType": "string", "containsNull": True}
    columns = {"id": "string", "name": "string", "price": "decimal(10,2)", "tags": strings}
    fields = {"columns": '["id", "name", "price", "tags"]', "escape-character": "\\"}
    yield Target("csv", TableScan(columns, "csv", fields), lines)
    product = {"id": "integer", "name": "string", "weight": "double"}
    for format_ in ("canal-json", "maxwell-json"):
        asked = (c for c in CASES if isinstance(c, Reads) and c.format == format_)
        values = [Record(value) for case in asked for value in case.values]
        yield Target(format_, TableScan(product, format_, {}, "retract"), values)


def _pairs(format_: str, table: str) -> list[Record]:
    file = next(f for f in files(format_) if f.stem.endswith(f"public.{table}"))
    return [Record(r.value, r.key, r.headers) for r in records(file)]


def fuzz(pairs: int, seed: int, registry: str, every: int = 1) -> Result:
    """Reads so many damaged pairs, spread evenly over every so manieth table."""
    chance = random.Random(seed)  # noqa: S311
    chosen = list(targets(registry))[::every]
    runs = [(t, kernel().local(planned(numbered(t.scan).plan()))) for t in chosen]
    everything = [p for target, _ in runs for p in target.pairs]
    result = Result(pairs, 0, Counter(), 0, 0, [])
    done = 0
    marks = [pairs * quarter // 4 for quarter in (1, 2, 3, 4)]
    while done < pairs:
        target, local = runs[(done // BATCH) % len(runs)]
        size = min(BATCH, pairs - done, *(m - done for m in marks if m > done))
        batch = [damaged(chance.choice(target.pairs), everything, chance) for _ in range(size)]
        outcome = feed(local, batch, done)
        result.rejects += Counter(outcome.rejects)
        result.rows += len(outcome.rows)
        heard = len({row[-1] for row in outcome.rows}) + len(outcome.rejects)
        result.silent += size - heard
        result.quiet += sum(may_be_silent(p, target.scan) for p in batch)
        done += size
        if done in marks:
            result.heap.append(heap_after_collection())
    return result


_NO_ROW = re.compile(rb"CREATE|\[\s*\]")
_NO_PAYLOAD = re.compile(rb'"payload"\s*:\s*null')


def may_be_silent(pair: Record, scan: TableScan) -> bool:
    """Without value, payload or row, or broken where an option says that such are skipped."""
    skips = scan.options.get("ignore-parse-errors") == "true"
    if scan.format in ("canal-json", "maxwell-json"):
        return not pair.value or bool(_NO_ROW.search(pair.value))
    return skips or pair.value is None or bool(_NO_PAYLOAD.search(pair.value))


def numbered(scan: TableScan) -> TableScan:
    """The table with the offset of each row behind its columns."""
    columns = {**scan.columns, "offset!": "long"}
    return replace(scan, columns=columns, metadata={"offset!": "offset"})


def heap_after_collection() -> int:
    runtime = jvm().java.lang.Runtime.getRuntime()
    for _ in range(3):
        jvm().java.lang.System.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())


def damaged(pair: Record, others: Sequence[Record], chance: random.Random) -> Record:
    """The pair, its value or key or headers broken in one to three ways; sometimes whole."""
    value, key, headers = pair.value, pair.key, pair.headers
    for _ in range(chance.randint(0, 3)):
        part = chance.random()
        if part < 0.7:
            value = _broken(value, others, chance)
        elif part < 0.9:
            key = _broken(key, others, chance)
        else:
            headers = _broken_headers(headers, chance)
    return Record(value, key, headers)


def _broken(data: bytes | None, others: Sequence[Record], chance: random.Random) -> bytes | None:
    if data is None:
        return chance.choice(others).value
    return chance.choice(DAMAGES)(data, chance.choice(others).value or b"", chance)


def _broken_headers(
    headers: tuple[tuple[str, bytes], ...], chance: random.Random
) -> tuple[tuple[str, bytes], ...]:
    kept = [h for h in headers if chance.random() < 0.7]
    broken = [
        (n, _flip(v, b"", chance)) if v and chance.random() < 0.3 else (n, v) for n, v in kept
    ]
    return tuple(broken + broken[: chance.randint(0, 1)])


def _flip(data: bytes, _: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    out = bytearray(data)
    for _i in range(chance.choice((1, 1, 1, 2, 8))):
        at = chance.randrange(len(out))
        out[at] ^= 1 << chance.randrange(8)
    return bytes(out)


def _cut(data: bytes, _: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _splice(data: bytes, other: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def _repeat(data: bytes, _: bytes, chance: random.Random) -> bytes:
    """A part twice: fields of an object among them."""
    start = chance.randrange(len(data) + 1)
    end = min(len(data), start + chance.randrange(200))
    return data[:end] + data[start:end] + data[end:]


def _twice(data: bytes, _: bytes, chance: random.Random) -> bytes:
    """A field of an object again, with another value."""
    names = re.findall(rb'"(\w+)":', data)
    if not names:
        return _flip(data, b"", chance)
    field = b'"%s":%s,' % (chance.choice(names), chance.choice(ODD_VALUES))
    at = data.find(b"{") + 1
    return data[:at] + field + data[at:]


def _odd_value(data: bytes, _: bytes, chance: random.Random) -> bytes:
    """Another value in the place of one."""
    found = list(re.finditer(rb'":("[^"]*"|[-0-9.]+|null|true|false)', data))
    if not found:
        return _huge_length(data, b"", chance)
    match = chance.choice(found)
    return data[: match.start(1)] + chance.choice(ODD_VALUES) + data[match.end(1) :]


def _huge_length(data: bytes, _: bytes, chance: random.Random) -> bytes:
    """A varint of Avro that says a great length or count."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(VARINTS) + data[at + chance.randint(0, 2) :]


def _deep(data: bytes, _: bytes, chance: random.Random) -> bytes:
    opening = chance.choice((b"[", b'{"a":'))
    at = data.find(b":") + 1
    return data[:at] + opening * chance.choice((10, 900, 1100, 50_000)) + data[at:]


def _invalid_text(data: bytes, _: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice((b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00")) + data[at:]


def _other_id(data: bytes, _: bytes, chance: random.Random) -> bytes:
    """The id of another schema of the recorded ones, or of none."""
    if not data.startswith(b"\0"):
        return _flip(data, b"", chance)
    return b"\0" + chance.randint(0, 30).to_bytes(4, "big") + data[5:]


def _nothing(data: bytes, _: bytes, chance: random.Random) -> bytes:
    return chance.choice((b"", b"{}", b"null", b"\0\0\0\0\x02", b'{"schema":{},"payload":{}}'))


DAMAGES: tuple[Callable[[bytes, bytes, random.Random], bytes], ...] = (
    _flip, _flip, _cut, _splice, _repeat, _twice, _odd_value, _odd_value, _huge_length, _deep,
    _invalid_text, _other_id, _nothing,
)  # fmt: skip
ODD_VALUES = (
    b"null", b"true", b"[]", b"{}", b'""', b"-1", b"1e400", b"1e999999999", b"-1e-999999999",
    b"99999999999999999999999999", b'"NaN"', b'"infinity"', b'"*"', b'"AAAA"', b"9" * 900,
    b'"1e1000000000"', b'{"scale":2147483647,"value":"AQ=="}',
    b'{"scale":-2147483648,"value":"AQ=="}', b'"__debezium_unavailable_value"',
    b'["__debezium_unavailable_value"]', b'"t"', b'"d"', b'"x"', b"[[[]]]", b'"\\ud800"',
)  # fmt: skip
VARINTS = (
    b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f", b"\x80" * 12,
    b"\xfe\xff\xff\x7f", b"\x01", b"\x03\x00",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with recorded_registry() as registry:
        result = fuzz(given.pairs, given.seed, registry)
    lines = [
        f"{result.pairs} pairs: {result.rows} rows, {sum(result.rejects.values())} rejects,"
        f" {result.silent} neither",
        *(f"  {n:>8} {reason}" for reason, n in result.rejects.most_common()),
        "heap after collection: " + ", ".join(f"{h / 1e6:.1f} MB" for h in result.heap),
        *result.problems,
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main())
