"""The same rows give the same result, however they are cut, spread over partitions and grouped."""

import base64
import json
import random
from typing import Any

import pytest

from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.kernel.oracle.__main__ import random_case
from tests.kernel.oracle.check import check
from tests.kernel.oracle.plans import PlanMachine, varied

pytestmark = pytest.mark.service  # it takes long


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize(("groups", "partitions"), [(1, 1), (7, 3), (32, 2)])
def test_batches_partitions_and_key_groups_do_not_matter(
    index: int, groups: int, partitions: int
) -> None:
    case = random_case("plan", seed=11, index=index, size=60)
    rng = random.Random(f"{index} {groups} {partitions}")  # noqa: S311 - repeatable, not secret
    failure = check(varied(case, rng, groups, partitions), PlanMachine)
    assert failure is None, failure and failure.report()


KAFKA = "'properties.bootstrap.servers' = 'b:1', 'topic' = 't'"
JSON = f"WITH ('connector' = 'kafka', 'format' = 'json', {KAFKA})"
UPSERT = (
    f"WITH ('connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json', {KAFKA})"
)
REKEYED = f"""
SET 'rejoin.key-groups' = '1';
CREATE TABLE a (k INT, v STRING) {JSON};
CREATE TABLE b (k INT, w STRING) {JSON};
CREATE TABLE s (v STRING, w STRING, PRIMARY KEY (v) NOT ENFORCED) {UPSERT};
INSERT INTO s SELECT a.v, b.w FROM a LEFT JOIN b ON a.k = b.k ON CONFLICT DO DEDUPLICATE;
"""  # noqa: S608 - a job, for no database


def test_a_repeated_batch_gives_the_same_state(jvm: Any) -> None:
    """Spark fetches the rows of a batch anew when it repeats it, in whatever order they come: rows
    that many keys of the join give one key of the sink must end up in the order of the first time,
    or the sink would go on showing what the state no longer does."""
    planned = to_json(plan(bind(REKEYED, "job.sql"))[0].root)
    keys = list(range(30))
    results = []
    for seed in range(3):
        local = jvm.local(planned)
        for table, column in (("a", "v"), ("b", "w")):
            random.Random(seed).shuffle(keys)  # noqa: S311 - repeatable, not secret
            values = [(k, {"k": k, column: f"w{k}" if table == "b" else "same"}) for k in keys]
            local.feed(table, json.dumps([_alone_in_its_partition(k, v) for k, v in values]))
        results.append((local.step(), local.cells()))
    assert results[1:] == results[:1] * 2


def _alone_in_its_partition(partition: int, value: object) -> dict[str, Any]:
    text = base64.b64encode(json.dumps(value).encode()).decode()
    return {"partition": partition, "offset": 0, "timestamp": 0, "key": None, "value": text}
