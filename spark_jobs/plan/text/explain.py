"""Plans as text and JSON for people; goldens in tests/plans hold them stable.

First the query as Flink prints it (logical, optimised, physical), then what rejoin runs: changelog
modes, unique keys, state layout, how long state is kept, delivery, warnings.
"""

from collections.abc import Sequence

from spark_jobs.errors import SqlError, SqlErrors, nesting_refused
from spark_jobs.options.settings import NOTHING_SET, DeclaredSettings
from spark_jobs.plan.nodes.parts import Advice
from spark_jobs.plan.nodes.physical import QueryPlan
from spark_jobs.plan.nodes.plan_json import Json, to_json
from spark_jobs.plan.planner import plan, plan_query
from spark_jobs.plan.rules.order import optimize
from spark_jobs.plan.text.flink import draw, flink_logical_tree, flink_physical_tree, logical_tree
from spark_jobs.plan.text.nodes import node_tree
from spark_jobs.sql.bind.binder import BoundQuery, Job, bind_to_explain
from spark_jobs.sql.logical import Logical

SECRET_WORDS = ("password", "secret", "token", "jaas", "user-info", "private")
MASK = "***"


def explain_text(text: str, source_name: str = "<sql>") -> str:
    """All queries of a job file, or the bare SELECT at its end.

    Raises:
        SqlErrors: the problems of the file.
    """
    bound, plans = planned(text, source_name)
    if isinstance(bound, Job):
        return explain_job(bound, plans)
    [select] = plans
    return explain_query(bound.query, select, bound.settings)


def explain_json(text: str, source_name: str = "<sql>") -> dict[str, Json]:
    """The same for programs, as `plan_json` has it; raises SqlErrors too."""
    _, plans = planned(text, source_name)
    return plan_json(plans)


def planned(text: str, source_name: str = "<sql>") -> tuple[Job | BoundQuery, Sequence[QueryPlan]]:
    """What the text means, and its plans; raises SqlErrors too."""
    bound = bind_to_explain(text, source_name)
    if isinstance(bound, Job):
        return bound, plan(bound)
    return bound, (_plan_select(bound, text, source_name),)


def _plan_select(bound: BoundQuery, text: str, source_name: str) -> QueryPlan:
    try:
        return plan_query(bound.query, bound.settings)
    except SqlErrors as problems:
        for problem in problems.errors:
            problem.locate(text, source_name)
        raise


def explain_job(job: Job, plans: Sequence[QueryPlan]) -> str:
    """All queries of a job; `plans` are those of its INSERTs, in order."""
    pairs = zip(job.inserts, plans, strict=True)
    texts = [explain_query(insert, planned, job.settings) for insert, planned in pairs]
    if len(texts) == 1:
        return texts[0]
    titled = zip(plans, texts, strict=True)
    return "\n\n".join(f"== Query {plan.name} ==\n\n{text}" for plan, text in titled)


def explain_query(query: Logical, plan: QueryPlan, settings: DeclaredSettings = NOTHING_SET) -> str:
    """One query, as bound, and its plan under these settings."""
    try:
        with nesting_refused():
            return _query_text(query, plan, settings)
    except SqlError as too_deep:
        raise SqlErrors([too_deep]) from too_deep


def _query_text(query: Logical, plan: QueryPlan, settings: DeclaredSettings) -> str:
    optimized = optimize(query, settings)
    sections = [
        ("Logical Plan", draw(logical_tree(query))),
        ("Optimized Logical Plan", draw(flink_logical_tree(optimized))),
        ("Optimized Physical Plan", draw(flink_physical_tree(optimized))),
        ("Rejoin Plan", draw(node_tree(plan.root))),
    ]
    for title, is_warning in (("Warnings", True), ("Advice", False)):
        lines = [line for a in plan.advice if a.is_warning is is_warning for line in a.lines()]
        if lines:
            sections.append((title, lines))
    return "\n\n".join("\n".join([f"== {title} ==", *lines]) for title, lines in sections)


def plan_json(plans: Sequence[QueryPlan]) -> dict[str, Json]:
    """The plans for machines that show them; values that may be secret are masked."""
    queries: list[Json] = [
        {
            "name": p.name,
            "warnings": list(p.warnings),
            "advice": [_advice_json(a) for a in p.advice],
            "plan": masked(to_json(p.root)),
        }
        for p in plans
    ]
    return {"version": 1, "queries": queries}


def _advice_json(advice: Advice) -> Json:
    return {"text": advice.text, "add": [*advice.add], "is_warning": advice.is_warning}


def masked(value: Json) -> Json:
    """The JSON with the values of options that are called secrets hidden."""
    match value:
        case dict():
            return {k: MASK if _is_secret(k, v) else masked(v) for k, v in value.items()}
        case list():
            return [masked(v) for v in value]
        case _:
            return value


def _is_secret(name: str, value: Json) -> bool:
    """Whether an option is called what secrets are called."""
    is_option = "." in name or "-" in name
    return is_option and isinstance(value, str) and any(w in name.lower() for w in SECRET_WORDS)
