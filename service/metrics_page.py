"""Prints docs/metrics.md: `python -m service.metrics_page > docs/metrics.md`."""

import sys

from service.metrics import METRICS

_HEAD = """\
# Metrics

The metrics at the sidecar's `/metrics`. `python -m service.metrics_page` prints this page; a
test compares it with the code. Totals that are kept in the checkpoint survive restarts
(a killed driver may lose ten seconds of them); transactions, registry calls, failed queries of
lookups and restarts start at zero with the driver. Let Prometheus derive rates.

| Name | Type | Labels | Meaning |
|---|---|---|---|
"""
_LATENCY = """
## Latency

`rejoin_result_latency_seconds` counts each record that a query writes to the topic of its sink,
tombstones and retractions included, by the time from its newest input to its commit. It does not
count dead-letter records. The live page shows p50 and p99 of the last minute.

- **From** the timestamp that Kafka has for the newest input record behind the result: the
  producer's time, or the broker's if the topic has `message.timestamp.type=LogAppendTime`. It is
  the newest record of the result's join key that the epoch has read; in a query without stateful
  operators, the record itself. After several operators it is the newest of all that came together
  on the way.
- **Time.** Some results leave because time has passed, without a record of their key: a left row
  of a temporal join when the watermark reaches it, a padded row of an interval join, an expired
  row. They count from the newest record that their key group has heard of in this epoch, such as
  the one that moved the watermark; if there was none, from the tick of the clock. So this
  histogram does not contain how long rows wait for event time; `rejoin_event_time_lag_seconds`
  does.
- **To** the moment at which Kafka has acknowledged the commit of the transaction that holds the
  result: from then on `read_committed` readers have it. Without transactions, to the moment at
  which Kafka has acknowledged all records of the task; in real-time mode, the record itself. The
  clock is that of the machine on which the task runs. If a producer's clock is ahead of it, the
  latency is too small by that much, but never smaller than the time that the task took to write.
- **Idle input** leads to no results, so nothing is counted. **Replayed input** and a backlog
  count with their age: after a start at the earliest offset the figure is the age of old records
  until the job has caught up.
- **A repeated epoch** counts when it is written, including the time that the failure took. If it
  is in Kafka already, it is skipped and not counted again. With at-least-once delivery it is
  written and counted twice.
- Records without a timestamp are not counted. Each latency is known to within a thirty-second of
  itself.
"""


def metrics_page() -> str:
    """docs/metrics.md."""
    rows = ""
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
        rows += f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |\n"
    return _HEAD + rows + _LATENCY


if __name__ == "__main__":
    sys.stdout.write(metrics_page())
