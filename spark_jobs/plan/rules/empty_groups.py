"""Groups of all rows without an aggregate function: `GROUP BY ()`, or HAVING alone."""

from dataclasses import replace

from spark_jobs.plan.rules.constants import FALSE
from spark_jobs.plan.rules.rewriting import map_inputs
from spark_jobs.sql.logical import Aggregate, AggregateCall, Field, Filter, Logical
from spark_jobs.sql.types.data_types import BIGINT, with_nullable

_COUNT = AggregateCall("COUNT", None, False, None, with_nullable(BIGINT, False))


def count_no_rows(node: Logical) -> Logical:
    """One row, whatever is read: that of COUNT(*) over no rows, of which nobody reads the count."""
    node = map_inputs(node, count_no_rows)
    if not isinstance(node, Aggregate) or node.keys or node.calls:
        return node
    fields = (Field("EXPR$0", _COUNT.type),)
    return replace(node, input=Filter(node.input, FALSE), calls=(_COUNT,), fields=fields)
