"""Jobs and coefficients for the tests of sizing, with figures that can be checked by hand."""

from collections.abc import Sequence
from dataclasses import fields, replace

from spark_jobs.plan.text.explain import planned
from spark_jobs.sizing.coefficients import Calibration, Coefficients, HeldOut, Measured
from spark_jobs.sizing.given import Given
from spark_jobs.sizing.load import QueryLoad, query_load
from spark_jobs.sizing.model import Bounds, Model

KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json'"
UPSERT = (
    "'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = 'b:1',"
    " 'key.format' = 'json', 'value.format' = 'json'"
)
TABLES = f"""
CREATE TABLE orders (id INT, k INT, note STRING, at TIMESTAMP(3),
  WATERMARK FOR at AS at) WITH ({KAFKA}, 'topic' = 'orders');
CREATE TABLE pings (k INT, at TIMESTAMP(3), WATERMARK FOR at AS at)
  WITH ({KAFKA}, 'topic' = 'pings');
CREATE TABLE rates (k INT, v STRING, at TIMESTAMP(3),
  PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR at AS at) WITH ({UPSERT}, 'topic' = 'rates');
CREATE TABLE users (k INT, city INT, PRIMARY KEY (k) NOT ENFORCED) WITH ({UPSERT}, 'topic' = 'u');
CREATE TABLE out (id INT, v STRING) WITH ({KAFKA}, 'topic' = 'out');
CREATE TABLE latest (k INT, city INT, v STRING, PRIMARY KEY (k) NOT ENFORCED)
  WITH ({UPSERT}, 'topic' = 'latest');
"""
TEMPORAL = """INSERT INTO out SELECT o.id, r.v FROM orders o
  LEFT JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON o.k = r.k;"""
REGULAR = "INSERT INTO latest SELECT u.k, u.city, r.v FROM users u LEFT JOIN rates r ON u.k = r.k;"
INTERVAL = """INSERT INTO out SELECT o.id, CAST(p.k AS STRING) FROM orders o JOIN pings p
  ON o.k = p.k AND p.at BETWEEN o.at AND o.at + INTERVAL '10' MINUTE;"""
APPENDS = (
    "INSERT INTO out SELECT o.id, CAST(p.k AS STRING) FROM orders o JOIN pings p ON o.k = p.k;"
)

NOTHING = Coefficients(**dict.fromkeys((f.name for f in fields(Coefficients)), 0.0))
PLAIN = replace(
    NOTHING,
    regular_row_us=10.0,
    temporal_row_us=10.0,
    interval_row_us=10.0,
    epoch_s=0.5,
    wait_factor=1.0,
    state_ratio=2.0,
    shuffle_ratio=1.0,
    regular_changelog_ratio=1.0,
    temporal_changelog_ratio=1.0,
    interval_changelog_ratio=1.0,
    kafka_in_ratio=1.0,
    kafka_out_ratio=1.0,
    heap_record_bytes=1024.0,
    heap_base_mb=300.0,
)
MEASURED = Measured("2026-01-31", "abc1234", "2 cores and 8 GiB")
CALIBRATION = Calibration(
    PLAIN,
    {f.name: "fitted to a run" for f in fields(Coefficients)} | {"heap_base_mb": "Spark"},
    MEASURED,
    (
        HeldOut("regular", "records per second", "1/s", 90.0, 100.0),
        HeldOut("temporal", "records per second", "1/s", 106.0, 100.0),
    ),
)


def loads(sql: str, given: Given) -> list[QueryLoad]:
    bound, plans = planned(TABLES + sql)
    return [query_load(plan, given, bound.tables) for plan in plans]


def model(
    sql: str,
    given: Given,
    known: Coefficients = PLAIN,
    groups: int = 128,
    parallelism: int | None = None,
    max_offsets: int = 10**12,
) -> Model:
    return Model(loads(sql, given), given, Bounds(groups, parallelism, max_offsets), known)


def lines_of(text: str, title: str) -> Sequence[str]:
    """The lines of a section."""
    return text.partition(f"== {title} ==\n")[2].partition("\n\n==")[0].splitlines()
