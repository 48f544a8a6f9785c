"""How much state a query gathers in an hour, from its tables' fill rates and sampled rows.

The formulas are those of docs/tuning.md, without RocksDB's own overhead. Only the rates of tables
are known: an operator that reads another operator's output gets no estimate.
"""

from collections.abc import Iterator, Mapping

from spark_jobs.check.finding import Finding
from spark_jobs.check.rate import HOUR_MS, FillRate
from spark_jobs.check.sample import DecodedSample
from spark_jobs.plan.check.state_size import SideFormula, feeds, side_formulas
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink, Stateful
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.terminal import size_text


def check_growth(
    name: str,
    sink: KafkaSink,
    samples: Mapping[tuple[str, int], DecodedSample],
    rates: Mapping[str, FillRate | None],
) -> Iterator[Finding]:
    """One finding per stateful operator and side; `samples` are by table and side of the scan."""
    for node in stateful_nodes(sink):
        for formula in side_formulas(node):
            for read in feeds(node, formula):
                about = f"query {name}, {node.id} {formula.side}"
                if not isinstance(read, KafkaScan):
                    text = (
                        f"{formula.formula}: its input is another operator, whose rate is unknown"
                    )
                    yield Finding("ok", "STATE_UNKNOWN", about, text)
                    continue
                sample, fill_rate = samples.get((read.table, read.side)), rates.get(read.table)
                rate = None if fill_rate is None else fill_rate.per_hour
                if sample is None or not sample.rows or rate is None:
                    text = f"{formula.formula}: {read.table} has too few records for a rate"
                    yield Finding("ok", "STATE_UNKNOWN", about, text)
                else:
                    yield _growth_finding(about, node, formula, sample, rate)


def _growth_finding(
    about: str, node: Stateful, formula: SideFormula, sample: DecodedSample, rate: float
) -> Finding:
    row, key = formula.row_bytes(sample.scan.schema, sample.rows)
    each = row + key + formula.beside
    parts = [f"row {row:.0f}"] if formula.keeps_row else []
    parts += [f"key {key:.0f}"] if formula.key else []
    named = f"({' + '.join(parts) or '0'}"
    share = 1.0 if formula.grows == "window" else sample.new_share
    new = rate * share
    source = f"{sample.scan.table}: {rate:.0f} records/h"
    source += f" x {share:.2f} new rows each" if share != 1.0 else ""
    product = f"{source} x {named} + {formula.beside}) bytes"
    bound = new * each * formula.kept_ms / HOUR_MS
    if formula.grows == "window":
        kept = f"{formula.kept_ms / 1000:g} s window and the watermark's delay"
        text = f"levels off at {size_text(bound)}: {product} x {kept}"
        return Finding("ok", "STATE_GROWTH", about, text)
    text = f"at most {size_text(new * each)} an hour: {product} ({formula.formula})"
    if formula.kept_ms:
        ttl = f"TTL {formula.kept_ms / HOUR_MS:g} h"
        text += f"; bounded at {size_text(bound)} by {ttl}, if rows are not updated"
        return Finding("ok", "STATE_GROWTH", about, text)
    if sample.scan.changelog != "append" or formula.grows == "keys":
        text += "; until every key has arrived"
        return Finding("ok", "STATE_GROWTH", about, text)
    hint = "set a TTL (docs/tuning.md, 'Less state'), or use an interval or temporal join"
    return Finding("warning", "STATE_UNBOUNDED", about, f"{text}; without end", hint)
