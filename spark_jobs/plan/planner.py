"""Logical to physical: one plan per INSERT, or everything that cannot run.

The logical plan that is planned here went through the rules. Below an optional sink and the SELECT
list it is a tree of stateful nodes whose inputs are `Project?(Filter?(...))` of tables, unions or
stateful nodes again; what cannot run is refused before.
"""

from itertools import chain, count

from spark_jobs.errors import PositionedError, SqlErrors, nesting_refused
from spark_jobs.options.settings import NOTHING_SET, REAL_TIME, DeclaredSettings
from spark_jobs.plan.check.advice import advise, idle_settings, real_time
from spark_jobs.plan.check.early_fire import idle_early_fires
from spark_jobs.plan.check.missing_rows import null_columns
from spark_jobs.plan.check.real_time_refusals import query_refusals, real_time_refusals
from spark_jobs.plan.check.refusals import refusals
from spark_jobs.plan.nodes.physical import QueryPlan
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.plan.rules.order import optimize
from spark_jobs.plan.strategy.building import Building, warning
from spark_jobs.plan.strategy.numbering import numbered
from spark_jobs.plan.strategy.sinks import root
from spark_jobs.sql.bind.binder import Job
from spark_jobs.sql.logical import Logical, Sink

BARE_QUERY = "query"


def plan(job: Job) -> tuple[QueryPlan, ...]:
    """One plan per INSERT. Raises SqlErrors with everything that cannot run."""
    problems: list[PositionedError] = []
    plans: list[QueryPlan] = []
    if job.settings.mode == REAL_TIME:
        problems += query_refusals(job.inserts)
    for name, insert in zip(query_names(job), job.inserts, strict=True):
        at = insert.position
        try:
            with nesting_refused(at.line, at.column):
                optimized = optimize(insert, job.settings)
                problems += refusals(insert, optimized, job.settings)
                if not problems:
                    made = _plan(optimized, name, job.settings)
                    problems += _mode_refusals(optimized, made, job.settings)
                    plans.append(made)
        except PositionedError as too_deep:
            problems.append(too_deep)
    if problems:
        for problem in problems:
            problem.locate(job.text, job.source_name)
        raise SqlErrors(problems)
    return tuple(plans)


def plan_query(query: Logical, settings: DeclaredSettings = NOTHING_SET) -> QueryPlan:
    """The plan of one query, with or without a sink."""
    try:
        with nesting_refused():
            optimized = optimize(query, settings)
            problems = list(refusals(query, optimized, settings))
            if problems:
                raise SqlErrors(problems)
            name = optimized.table.name if isinstance(optimized, Sink) else BARE_QUERY
            made = _plan(optimized, name, settings)
            if problems := _mode_refusals(optimized, made, settings):
                raise SqlErrors(problems)
            return made
    except PositionedError as too_deep:
        raise SqlErrors([too_deep]) from too_deep


def _mode_refusals(
    optimized: Logical, made: QueryPlan, settings: DeclaredSettings
) -> list[PositionedError]:
    """What depends on the finished plan."""
    return list(real_time_refusals(optimized, made.root)) if settings.mode == REAL_TIME else []


def query_names(job: Job) -> tuple[str, ...]:
    """A query is called after its sink, with a number where one before it has the name.

    Another INSERT behind the others leaves their names, and so their checkpoints, as they are.
    """
    names: list[str] = []
    for sink in (insert.table.name for insert in job.inserts):
        wanted = chain([sink], (f"{sink}_{n}" for n in count(2)))
        names.append(next(name for name in wanted if name not in names))
    return tuple(names)


def _plan(optimized: Logical, name: str, settings: DeclaredSettings) -> QueryPlan:
    building = Building(settings)
    planned = numbered(root(optimized, name, building))
    sends_late_rows = any(node.output.late_topic for node in stateful_nodes(planned))
    if settings.late_topic and not sends_late_rows:
        senders = (
            "only an event-time temporal join that drops late probe rows, or an interval join of"
            " rows that change, sends them"
        )
        building.warn(warning(f"no late rows go to 'rejoin.late.topic': {senders}"))
    warned = (*building.warnings, *null_columns(optimized), *idle_early_fires(optimized))
    told = (*real_time(planned, settings), *idle_settings(settings), *advise(planned))
    return QueryPlan(name, planned, (*warned, *told))
