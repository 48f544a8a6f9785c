"""The common part of all operators with state, around the machine of each."""

from collections.abc import Iterable, Sequence

from spark_jobs.plan.facts.changelog import mode_text
from spark_jobs.plan.facts.facts import Facts
from spark_jobs.plan.facts.keys import Key, key_order
from spark_jobs.plan.nodes.parts import Advice, Output, Timing
from spark_jobs.plan.nodes.physical import Machine, Stateful
from spark_jobs.plan.strategy.building import Building, Input, Planned, Required
from spark_jobs.plan.strategy.scans import text_of, texts_of


def operator(
    machine: Machine,
    required: Required,
    names: tuple[str, ...],
    known: Facts,
    timing: Timing,
    building: Building,
    inputs: tuple[Input, ...],
    warnings: Iterable[Advice] = (),
    *,
    late_topic: str | None = None,
    ordered: bool = False,
) -> Planned:
    """An operator whose columns have these names; its id comes later.

    `known` are the facts of the logical node that it stands for.
    """
    node = Stateful(
        id="",
        machine=machine,
        output=Output(
            where=text_of(required.where, names),
            pair_by=texts_of(required.pair_by, names),
            time_zone=building.time_zone,
            late_topic=late_topic,
        ),
        timing=timing,
        inputs=(),
        changelog_mode=mode_text(known.kinds, required.update_before),
        unique_keys=named_keys(known.unique_keys, names),
    )
    return Planned(node, names, inputs, tuple(warnings), ordered)


def named_keys(keys: frozenset[Key], names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Unique keys by column name, those that are all kept."""
    ordered = sorted(keys, key=key_order)
    return tuple(tuple(names[i] for i in sorted(k)) for k in ordered if all(names[i] for i in k))
