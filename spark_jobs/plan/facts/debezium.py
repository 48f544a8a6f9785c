"""How a table's options say that Debezium's records are read, and what to warn of."""

from spark_jobs.plan.nodes.parts import Debezium
from spark_jobs.sql.catalog import Table


def debezium_of(table: Table) -> Debezium | None:
    """None for a table whose records Debezium did not write."""
    if not (table.holds_events or table.unwrapped):
        return None
    return Debezium(
        unwrapped=table.unwrapped,
        full_before=table.full_before,
        timestamp_unit=table.options.debezium.timestamp_unit,
        decimals=table.options.debezium.decimals,
    )


def debezium_warning(table: Table) -> str | None:
    """What may go wrong with a table that takes whole rows from events."""
    if not table.holds_events or table.primary_key or table.full_before:
        return None
    return (
        f"table {table.name} has no PRIMARY KEY, so that deletions and updates are taken from the"
        " row before a change, which only REPLICA IDENTITY FULL makes complete: under DEFAULT its"
        " columns are empty or zero"
    )
