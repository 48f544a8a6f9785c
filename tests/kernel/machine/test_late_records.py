"""What is written of a late row where a topic for late rows is declared."""

import base64
import json
from typing import Any

from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.harness.gateway import kernel

_KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json'"
_SQL = f"""\
SET 'rejoin.late.topic' = 'late';
CREATE TABLE orders (id INT, k STRING, note STRING, at TIMESTAMP(3), WATERMARK FOR at AS at)
WITH ({_KAFKA}, 'topic' = 'orders');
CREATE TABLE rates (k STRING, rate INT, at TIMESTAMP(3), PRIMARY KEY (k) NOT ENFORCED,
  WATERMARK FOR at AS at)
WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1', 'topic' = 'rates',
  'format' = 'changelog-json');
CREATE TABLE s (id INT, rate INT) WITH ({_KAFKA}, 'topic' = 's');
INSERT INTO s SELECT o.id, r.rate
FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON o.k = r.k;
"""  # noqa: S608 - a job, for no database
ELEVEN = 1_597_489_200_000  # 2020-08-15 11:00


def record(offset: int, row: dict[str, Any]) -> dict[str, Any]:
    value = base64.b64encode(json.dumps(row).encode()).decode()
    place = {"partition": 0, "offset": offset, "timestamp": 0}
    return place | {"key": None, "value": value, "headers": []}


def test_value_and_headers_of_a_late_row() -> None:
    (job,) = plan(bind(_SQL))
    run = kernel().local(to_json(job.root))
    rate = {"k": "EUR", "rate": 1, "at": "2020-08-15 12:00:00"}
    order = {"id": 1, "k": "EUR", "note": "not read", "at": "2020-08-15 11:00:00"}
    run.feed("rates", json.dumps([record(0, {"op": "+I", "data": rate})]))
    run.feed("orders", json.dumps([record(0, order)]))
    assert json.loads(run.step())["rejects"] == []
    late = order | {"id": 2, "at": "2020-08-15 10:59:59.999"}
    run.feed("orders", json.dumps([record(1, late)]))
    [reject] = json.loads(run.step())["rejects"]
    assert reject["topic"] == "late"
    assert json.loads(base64.b64decode(reject["value"])) == {"id": 2}  # all that the result shows
    headers = {name: base64.b64decode(text).decode() for name, text in reject["headers"]}
    assert headers.pop("rejoin.operator")
    assert headers == {
        "rejoin.reason": "late",
        "rejoin.kind": "+I",
        "rejoin.watermark": str(ELEVEN),
        "rejoin.event-time": str(ELEVEN - 1),
    }
