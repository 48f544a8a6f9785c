"""The jobs of the benchmark; both engines run the same SQL, apart from SET statements."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Template
from typing import Literal

from bench.data import IntervalData, RegularData, TemporalData
from bench.load import BenchData

JobName = Literal["regular", "temporal", "interval"]
Guarantee = Literal["exactly-once", "at-least-once"]

_REGULAR = """\
CREATE TABLE orders_a (
  id BIGINT,
  amount DOUBLE,
  note STRING,
  placed_at TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'orders_a');

CREATE TABLE orders_b (
  id BIGINT,
  carrier STRING,
  weight INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'orders_b');

CREATE TABLE shipped (
  id BIGINT,
  amount DOUBLE,
  note STRING,
  placed_at TIMESTAMP(3),
  carrier STRING,
  weight INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_sink);

INSERT INTO shipped
SELECT a.id, a.amount, a.note, a.placed_at, b.carrier, b.weight
FROM orders_a AS a
LEFT JOIN orders_b AS b ON a.id = b.id;
"""

_TEMPORAL = """\
CREATE TABLE orders (
  order_id BIGINT,
  product_id BIGINT,
  quantity INT,
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH ($append_source, 'topic' = 'orders');

CREATE TABLE prices (
  product_id BIGINT,
  price DOUBLE,
  changed_at TIMESTAMP(3),
  PRIMARY KEY (product_id) NOT ENFORCED,
  WATERMARK FOR changed_at AS changed_at - INTERVAL '5' SECOND
) WITH ($upsert_source, 'topic' = 'prices');

CREATE TABLE priced (
  order_id BIGINT,
  product_id BIGINT,
  quantity INT,
  order_time TIMESTAMP(3),
  price DOUBLE
) WITH ($append_sink);

INSERT INTO priced
SELECT o.order_id, o.product_id, o.quantity, o.order_time, p.price
FROM orders AS o
LEFT JOIN prices FOR SYSTEM_TIME AS OF o.order_time AS p
ON o.product_id = p.product_id;
"""

_INTERVAL = """\
CREATE TABLE purchases (
  order_id BIGINT,
  amount DOUBLE,
  placed_at TIMESTAMP(3),
  WATERMARK FOR placed_at AS placed_at - INTERVAL '5' SECOND
) WITH ($append_source, 'topic' = 'purchases');

CREATE TABLE parcels (
  order_id BIGINT,
  carrier STRING,
  sent_at TIMESTAMP(3),
  WATERMARK FOR sent_at AS sent_at - INTERVAL '5' SECOND
) WITH ($append_source, 'topic' = 'parcels');

CREATE TABLE sent (
  order_id BIGINT,
  amount DOUBLE,
  placed_at TIMESTAMP(3),
  carrier STRING
) WITH ($append_sink);

INSERT INTO sent
SELECT p.order_id, p.amount, p.placed_at, s.carrier
FROM purchases AS p
LEFT JOIN parcels AS s
ON p.order_id = s.order_id
AND s.sent_at BETWEEN p.placed_at AND p.placed_at + INTERVAL '10' MINUTE;
"""


@dataclass(frozen=True, slots=True)
class BenchJob:
    """A job with its data and the columns of its result, the first of which is the key.

    If `appends`, each row is written once; otherwise the last record of a key is its row.
    """

    name: JobName
    title: str
    template: str
    sink_columns: tuple[str, ...]
    appends: bool
    default_keys: int
    data: Callable[[int, int], BenchData]


JOBS: dict[JobName, BenchJob] = {
    "regular": BenchJob(
        name="regular",
        title="regular left join of two upsert topics on their primary key",
        template=_REGULAR,
        sink_columns=("id", "amount", "note", "placed_at", "carrier", "weight"),
        appends=False,
        default_keys=1_000_000,
        data=RegularData,
    ),
    "temporal": BenchJob(
        name="temporal",
        title="event-time temporal left join of an append topic with a versioned one",
        template=_TEMPORAL,
        sink_columns=("order_id", "product_id", "quantity", "order_time", "price"),
        appends=True,
        default_keys=100_000,
        data=TemporalData,
    ),
    "interval": BenchJob(
        name="interval",
        title="interval left join of two append topics within ten minutes",
        template=_INTERVAL,
        sink_columns=("order_id", "amount", "placed_at", "carrier"),
        appends=True,
        default_keys=2_000_000,
        data=IntervalData,
    ),
}


def render(
    job: BenchJob,
    settings: Mapping[str, str],
    sink_topic: str,
    bootstrap_servers: str,
    registry_url: str,
    guarantee: Guarantee = "exactly-once",
) -> str:
    """The SQL for one engine, with its settings and its own sink topic."""
    sets = "".join(f"SET '{name}' = '{value}';\n" for name, value in settings.items())
    broker = {"properties.bootstrap.servers": bootstrap_servers}
    bounded = {"scan.bounded.mode": "latest-offset"}
    value = {"value.format": "avro-confluent", "value.avro-confluent.url": registry_url}
    both = {**value, "key.format": "avro-confluent", "key.avro-confluent.url": registry_url}
    sink = {"topic": sink_topic, "sink.delivery-guarantee": guarantee}
    if guarantee == "exactly-once":
        sink["sink.transactional-id-prefix"] = sink_topic
        # Flink's default of an hour exceeds the broker's limit
        sink["properties.transaction.timeout.ms"] = "600000"
    append = {"connector": "kafka", **broker, **value}
    upsert = {"connector": "upsert-kafka", **broker, **both}
    body = Template(job.template).substitute(
        append_source=_options({**append, **bounded, "scan.startup.mode": "earliest-offset"}),
        upsert_source=_options({**upsert, **bounded}),
        append_sink=_options({**append, **sink}),
        upsert_sink=_options({**upsert, **sink}),
    )
    return f"{sets}\n{body}" if sets else body


def _options(options: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
