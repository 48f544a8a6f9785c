"""The state that a query would gather in an hour, from the pace and the rows of its samples.

The formulas are docs/tuning.md's (plan/check/state_size.py), RocksDB's own share aside. Rates
are those of the tables; what reaches an operator from another one is not guessed.
"""

from collections.abc import Iterator, Mapping

from spark_jobs.check.finding import Finding
from spark_jobs.check.pace import HOUR_MS, Pace
from spark_jobs.check.sample import Decoded
from spark_jobs.plan.check.fingerprint import stateful_nodes
from spark_jobs.plan.check.state_size import SideFormula, feeds, side_formulas
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink, Stateful

_GIB = 2**30


def check_growth(
    name: str,
    sink: KafkaSink,
    samples: Mapping[tuple[str, int], Decoded],
    paces: Mapping[str, Pace | None],
) -> Iterator[Finding]:
    """Per stateful operator and side; `samples` by table and side of their scan."""
    for node in stateful_nodes(sink):
        for formula in side_formulas(node):
            for read in feeds(node, formula):
                about = f"query {name}, {node.id} {formula.side}"
                if not isinstance(read, KafkaScan):
                    text = f"{formula.formula}: its input is another operator, whose rate no "
                    yield Finding("ok", "STATE_UNKNOWN", about, f"{text}sample tells")
                    continue
                sample, pace = samples.get((read.table, read.side)), paces.get(read.table)
                rate = None if pace is None else pace.per_hour
                if sample is None or not sample.rows or rate is None:
                    text = f"{formula.formula}: {read.table} has no rows with a pace to go by"
                    yield Finding("ok", "STATE_UNKNOWN", about, text)
                else:
                    yield _grown(about, node, formula, sample, rate)


def _grown(
    about: str, node: Stateful, formula: SideFormula, sample: Decoded, rate: float
) -> Finding:
    row, key = formula.row_bytes(sample.scan.schema, sample.rows)
    each = row + key + formula.beside
    named = f"(row {row:.0f}" + (f" + key {key:.0f}" if formula.key else "")
    share = 1.0 if formula.grows == "window" else sample.new_share
    new = rate * share
    source = f"{sample.scan.table}: {rate:.0f} records/h"
    source += f" x {share:.2f} new rows each" if share != 1.0 else ""
    product = f"{source} x {named} + {formula.beside}) bytes"
    bound = new * each * formula.kept_ms / HOUR_MS
    if formula.grows == "window":
        kept = f"{formula.kept_ms / 1000:g} s window and the watermark's delay"
        text = f"levels off at {size(bound)}: {product} x {kept}"
        return Finding("ok", "STATE_GROWTH", about, text)
    text = f"at most {size(new * each)} an hour: {product} ({formula.formula})"
    if formula.kept_ms:
        ttl = f"TTL {formula.kept_ms / HOUR_MS:g} h"
        text += f"; bounded at {size(bound)} by {ttl}, if rows do not change"
        return Finding("ok", "STATE_GROWTH", about, text)
    if sample.scan.changelog != "append" or formula.grows == "keys":
        text += "; until every key is there"
        return Finding("ok", "STATE_GROWTH", about, text)
    hint = "a TTL (docs/tuning.md, 'Less state'), or an interval or temporal join"
    return Finding("warning", "STATE_UNBOUNDED", about, f"{text}; for ever", hint)


def size(count: float) -> str:
    """
    >>> size(3 * 2**20)
    '3.0 MiB'
    """
    for unit, bytes_of in (("GiB", _GIB), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= bytes_of:
            return f"{count / bytes_of:.1f} {unit}"
    return f"{count:.0f} bytes"
