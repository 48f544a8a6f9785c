"""A planned job as the page shows it: each query as boxes and arrows, and what was configured."""

from collections.abc import Mapping, Sequence

from spark_jobs.job_record import AdviceRecord, GraphEdge, GraphNode, JobRecord, QueryRecord
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink, Operator, QueryPlan, Rekey, Results
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.nodes.walk import idle_timeouts
from spark_jobs.plan.text.explain import explain_query, masked
from spark_jobs.plan.text.nodes import node_tree
from spark_jobs.plan.text.result_keys import result_keys
from spark_jobs.plan.text.times import retention_text
from spark_jobs.plan.text.words import in_words
from spark_jobs.sql.bind.binder import Job

_SERVERS = "properties.bootstrap.servers"
_PROTOCOL = "properties.security.protocol"


def job_record(
    job: Job, plans: Sequence[QueryPlan], name: str, config: Mapping[str, str]
) -> JobRecord:
    """`plans` are those of the job's INSERTs, in order; `config` is what it runs with."""
    options = {t.name: t.options.given for t in job.tables.values()}
    servers = {o[_SERVERS] for o in options.values() if _SERVERS in o}
    explained = [
        query_record(planned, explain_query(insert, planned, job.settings))
        for insert, planned in zip(job.inserts, plans, strict=True)
    ]
    return JobRecord(
        job=name,
        config=_masked({**job.settings.given, **config}),
        tables={table: _masked(given) for table, given in options.items()},
        queries=tuple(explained),
        servers=tuple(sorted(servers)),
        secured=any(o.get(_PROTOCOL, "PLAINTEXT") != "PLAINTEXT" for o in options.values()),
    )


def _masked(options: Mapping[str, str]) -> dict[str, str]:
    shown = masked(dict(options))
    return {k: str(v) for k, v in shown.items()} if isinstance(shown, dict) else {}


def query_record(plan: QueryPlan, text: str) -> QueryRecord:
    """`text` is what `rejoin explain` prints for the query."""
    drawing = _Drawing(plan.name, idle_timeouts(plan.root))
    drawing.end(plan.root)
    shown = masked(to_json(plan.root))
    return QueryRecord(
        name=plan.name,
        nodes=tuple(drawing.nodes),
        edges=tuple(drawing.edges),
        warnings=plan.warnings,
        advice=tuple(
            AdviceRecord(text=a.text, add=a.add, is_warning=a.is_warning) for a in plan.advice
        ),
        text=text,
        plan=shown if isinstance(shown, dict) else {},
    )


class _Drawing:
    """Collects nodes from the sources on, so that each stands before those it feeds."""

    def __init__(self, query: str, idle_timeouts: Mapping[int, int]) -> None:
        self.nodes: list[GraphNode] = []
        self.edges: list[GraphEdge] = []
        self._query = query
        self._idle_timeouts = idle_timeouts
        self._keys: Mapping[str, tuple[str, ...]] = {}
        self._scans = 0

    def end(self, root: KafkaSink | Results) -> None:
        self._keys = result_keys(root)
        feeding = [self._operator(project.input) for project in root.inputs]
        if isinstance(root, KafkaSink):
            self.nodes.append(
                GraphNode(
                    id="sink",
                    kind="sink",
                    title=root.table,
                    details=tuple(node_tree(root).details),
                    table=root.table,
                    topics=(root.topic,),
                )
            )
            self.edges += [GraphEdge(source=below, target="sink") for below in feeding]

    def _operator(self, node: Operator) -> str:
        if isinstance(node, KafkaScan):
            return self._source(node)
        names = node.side_names if node.sides else ("", "")
        sides = [(self._input(i), names[i.side]) for i in node.inputs]
        tree = node_tree(node)
        self.nodes.append(
            GraphNode(
                id=node.id,
                kind="operator",
                title=in_words(node.machine),
                details=(tree.text, *tree.details),
                operator=f"{self._query}/{node.id}",
                ttl_ms=node.timing.ttl_ms,
                retention="; ".join(retention_text(node)).removeprefix("retention: "),
                key_columns=self._keys.get(node.id, ()),
            )
        )
        self.edges += [GraphEdge(source=s, target=node.id, side=side) for s, side in sides]
        return node.id

    def _input(self, node: KafkaScan | Rekey) -> str:
        return self._operator(node.input if isinstance(node, Rekey) else node)

    def _source(self, node: KafkaScan) -> str:
        self._scans += 1
        idle = [self._idle_timeouts[t.index] for t in node.topics if t.index in self._idle_timeouts]
        found = GraphNode(
            id=f"source-{self._scans}",
            kind="source",
            title=node.table,
            details=tuple(node_tree(node).details),
            table=node.table,
            topics=tuple(topic.name for topic in node.topics),
            tells_time=node.watermark is not None and bool(idle),
            idle_timeout_ms=max(idle, default=0),
        )
        self.nodes.append(found)
        return found.id
