"""What job files mean: tables, logical plans, settings."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import Job, bind, bind_query
from spark_jobs.sql.logical import Filter, Join, Position, Project, Scan
from spark_jobs.sql.types.expr import Call, Column, FieldAccess, Literal
from tests.unit.sql.texts import script

SEED_1 = """
CREATE TABLE A (a1 INT, a2 BIGINT, a3 STRING) <append>;
CREATE TABLE B (b1 INT, b2 BIGINT, b3 STRING) <append>;
"""
SEED_4 = """
CREATE TABLE orders (
  order_id STRING,
  product_id STRING,
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time  -- defines the necessary event time
) <append>;

SET table.local-time-zone=UTC;

CREATE TABLE product_changelog (
  product_id STRING,
  product_name STRING,
  product_price DECIMAL(10, 4),
  update_time TIMESTAMP(3) METADATA FROM 'value.source.timestamp' VIRTUAL, -- from milliseconds
  PRIMARY KEY(product_id) NOT ENFORCED,      -- (1) defines the primary key constraint
  WATERMARK FOR update_time AS update_time   -- (2) defines the event time by watermark
) WITH (
  'connector' = 'kafka',
  'topic' = 'products',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092',
  'value.format' = 'debezium-json'
);

CREATE TABLE enriched (
  order_id STRING, order_time TIMESTAMP(3), product_name STRING, product_time TIMESTAMP(3),
  price DECIMAL(12, 4), PRIMARY KEY (order_id) NOT ENFORCED
) <upsert>;

INSERT INTO enriched
SELECT order_id, order_time, product_name, update_time, product_price
FROM orders AS O
LEFT JOIN product_changelog FOR SYSTEM_TIME AS OF O.order_time AS P
ON O.product_id = P.product_id;
"""


def query(*parts: str) -> Project:
    found = bind_query(script(SEED_1, *parts)).query
    assert isinstance(found, Project)
    return found


def join_of(project: Project) -> Join:
    assert isinstance(project.input, Join)
    return project.input


def seed_4() -> Job:
    return bind(script(SEED_4), "seed_4.sql")


def test_seed_1_is_a_projected_join() -> None:
    project = query("SELECT a1, b1 FROM A JOIN B ON a1 = b1 and a2 > b2")
    join = join_of(project)
    assert [(f.name, f.type.sql()) for f in project.fields] == [("a1", "INT"), ("b1", "INT")]
    assert [e.index for e in project.exprs if isinstance(e, Column)] == [0, 3]
    assert (join.kind, join.as_of) == ("inner", None)
    assert join.position == Position(5, 27)
    match join.condition:
        case Call(
            op="AND",
            args=(
                Call(op="=", args=(Column(index=0), Column(index=3))),
                Call(op=">", args=(Column(index=1), Column(index=4))),
            ),
        ):
            pass
        case other:
            raise AssertionError(other)


def test_seed_4_is_a_temporal_join_into_an_upsert_table() -> None:
    job = seed_4()
    (sink,) = job.inserts
    assert sink.table.name == "enriched"
    assert job.settings.given == {"table.local-time-zone": "UTC"}
    project = sink.input
    assert isinstance(project, Project)
    join = join_of(project)
    assert join.kind == "left"
    assert isinstance(join.as_of, Column)
    assert join.as_of.name == "order_time"
    assert [f.time for f in join.left.fields] == [None, None, "rowtime"]
    assert [f.time for f in join.right.fields] == [None, None, None, "rowtime"]
    assert project.fields[1].time == "rowtime"
    assert [f.type.nullable for f in join.right.fields] == [False, True, True, True]
    # the sink's price is wider than the query's
    assert isinstance(project.exprs[4], Call)
    assert project.exprs[4].op == "CAST"
    assert [f.type.sql() for f in sink.fields][4] == "DECIMAL(12, 4)"


def test_tables_know_their_changelog() -> None:
    tables = seed_4().tables
    assert tables["orders"].changelog == "append"
    assert tables["product_changelog"].changelog == "upsert"
    assert tables["enriched"].changelog == "upsert"
    assert tables["enriched"].key_fields == ("order_id",)
    price = tables["product_changelog"].column("update_time")
    assert (price.kind, price.metadata_key, price.virtual) == (
        "metadata",
        "value.source.timestamp",
        True,
    )
    assert not price.writable


def test_debezium_without_a_key_is_a_retract_table() -> None:
    for format_ in ("debezium-json", "changelog-json"):
        text = "CREATE TABLE t (a INT) <append>; SELECT * FROM t"
        table = bind_query(script(text).replace("'json'", f"'{format_}'")).tables["t"]
        assert table.changelog == "retract"


DEBEZIUM_AVRO = """CREATE TABLE t (a INT, at BIGINT METADATA FROM 'value.source.timestamp' VIRTUAL)
WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'x',
  'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = 'http://r',
  'rejoin.schema-id' = 'apicurio-headers', 'rejoin.registry.timeout' = '2 min');
SELECT * FROM t"""


def test_debezium_avro_reads_as_debezium_json() -> None:
    table = bind_query(script(DEBEZIUM_AVRO)).tables["t"]
    assert table.changelog == "retract"
    assert table.value_format is not None
    assert table.value_format.texts == {
        "url": "http://r",
        "auto-register-schemas": "true",
        "rejoin.schema-id": "apicurio-headers",
        "rejoin.registry.timeout-ms": "120000",
    }
    keyed = DEBEZIUM_AVRO.replace("VIRTUAL)", "VIRTUAL, PRIMARY KEY (a) NOT ENFORCED)")
    assert bind_query(script(keyed)).tables["t"].changelog == "upsert"


def test_formats_carry_their_options_and_defaults() -> None:
    text = """CREATE TABLE t (a INT, b STRING) WITH ('connector' = 'kafka', <options>,
      'key.format' = 'raw', 'key.fields' = 'a', 'value.format' = 'json',
      'value.json.ignore-parse-errors' = 'true'); SELECT * FROM t"""
    table = bind_query(script(text)).tables["t"]
    assert table.value_format is not None
    assert table.value_format.texts["ignore-parse-errors"] == "true"
    assert table.value_format.texts["timestamp-format.standard"] == "SQL"
    assert table.key_format is not None
    assert table.key_format.texts == {"charset": "UTF-8", "endianness": "big-endian"}
    assert table.options.kafka.startup.mode == "group-offsets"
    assert table.properties == {"bootstrap.servers": "localhost:9092"}


def test_computed_columns_and_watermarks_are_expressions_over_all_columns() -> None:
    text = """CREATE TABLE t (
      ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), p AS PROCTIME(), a INT,
      WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) <append>; SELECT * FROM t"""
    bound = bind_query(script(text))
    table = bound.tables["t"]
    assert isinstance(table.columns[1].expr, Call)
    assert table.watermark is not None
    match table.watermark.expr:
        case Call(op="-", args=(Column(index=1), Literal(value=5000))):
            pass
        case other:
            raise AssertionError(other)
    assert [f.time for f in bound.query.fields] == [None, "rowtime", "proctime", None]


def test_time_attributes_pass_joins_and_end_where_they_are_computed_with() -> None:
    text = SEED_4.partition("CREATE TABLE enriched")[0]
    bound = bind_query(
        script(text, "SELECT order_time + INTERVAL '1' SECOND, order_time t FROM orders")
    )
    assert [f.time for f in bound.query.fields] == [None, "rowtime"]
    joined = bind_query(
        script(text, "SELECT o.* FROM orders o JOIN orders p ON o.order_id = p.order_id")
    )
    assert [f.time for f in joined.query.fields] == [None, None, "rowtime"]


def test_comma_join_is_a_join_without_condition() -> None:
    project = query("SELECT * FROM A, B WHERE a1 = b1")
    assert isinstance(project.input, Filter)
    assert isinstance(project.input.input, Join)
    assert project.input.input.condition is None
    assert project.input.input.kind == "inner"


def test_outer_joins_pad_their_other_side() -> None:
    text = "CREATE TABLE K (k INT NOT NULL) <append>;"
    left = query(text, "SELECT * FROM K x LEFT JOIN K y ON x.k = y.k")
    assert [f.type.nullable for f in left.fields] == [False, True]
    full = query(text, "SELECT * FROM K x FULL OUTER JOIN K y ON x.k = y.k")
    assert [f.type.nullable for f in full.fields] == [True, True]


def test_names_of_the_select_list() -> None:
    project = query(
        "SELECT A.a1, x.a1, a2 + 1, a3 AS `q r`, 7 FROM A JOIN (SELECT a1 FROM A) x ON TRUE"
    )
    assert [f.name for f in project.fields] == ["a1", "a10", "EXPR$2", "q r", "EXPR$4"]


def test_stars() -> None:
    project = query("SELECT B.*, a1 FROM A JOIN B ON a1 = b1")
    assert [f.name for f in project.fields] == ["b1", "b2", "b3", "a1"]


def test_views_and_aliases_with_column_names() -> None:
    project = query(
        "CREATE VIEW v (p, q) AS SELECT a1, a2 FROM A WHERE a1 > 0;"
        "SELECT w.x, v.q FROM v JOIN (SELECT b1, b2 FROM B) AS w (x, y) ON v.p = w.x"
    )
    assert [f.name for f in project.fields] == ["x", "q"]


def test_fields_of_rows() -> None:
    text = "CREATE TABLE r (r ROW<id BIGINT NOT NULL, s ROW<t STRING>>) <append>;"
    project = query(text, "SELECT r.id, r.s.t, x.r.s.t FROM r AS x")
    assert [f.name for f in project.fields] == ["id", "t", "t0"]
    assert all(isinstance(e, FieldAccess) for e in project.exprs)
    assert [f.type.sql() for f in project.fields] == ["BIGINT", "STRING", "STRING"]


def test_comparisons_are_cast_to_a_common_type() -> None:
    match join_of(query("SELECT a1 FROM A JOIN B ON a1 = b2")).condition:
        case Call(op="=", args=(Call(op="CAST", args=(Column(index=0),), type=t), Column(index=4))):
            assert t.name == "BIGINT"
        case other:
            raise AssertionError(other)


def test_constants_take_the_type_they_are_compared_in() -> None:
    match query("SELECT a1 FROM A WHERE a2 > 5").input:
        case Filter(condition=Call(op=">", args=(Column(), Literal(value=5, type=type_)))):
            assert type_.sql() == "BIGINT NOT NULL"
        case other:
            raise AssertionError(other)


def test_several_inserts_and_statement_sets() -> None:
    sink = "CREATE TABLE s (x INT, y BIGINT) <append>;"
    inserts = "INSERT INTO s SELECT a1, a2 FROM A; INSERT INTO s SELECT b1, b2 FROM B;"
    assert len(bind(script(SEED_1, sink, inserts)).inserts) == 2
    framed = f"EXECUTE STATEMENT SET BEGIN {inserts} END;"
    assert len(bind(script(SEED_1, sink, framed)).inserts) == 2
    older = f"BEGIN STATEMENT SET; {inserts} END;"
    assert len(bind(script(SEED_1, sink, older)).inserts) == 2


def test_insert_with_column_names_reorders_and_fills() -> None:
    sink = "CREATE TABLE s (x INT, y BIGINT, z STRING) <append>;"
    (insert,) = bind(script(SEED_1, sink, "INSERT INTO s (y, x) SELECT a2, a1 FROM A")).inserts
    assert isinstance(insert.input, Project)
    assert [getattr(e, "index", None) for e in insert.input.exprs] == [0, 1, None]


def test_settings_are_kept_as_typed() -> None:
    text = script("SET 'rejoin.trigger-interval' = '10 s';", SEED_1, "SELECT a1 FROM A")
    assert bind_query(text).settings.given == {"rejoin.trigger-interval": "10 s"}


def test_references_stay_references() -> None:
    text = """CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'format' = 'json', 'topic' = 't',
      'properties.bootstrap.servers' = '${env:SERVERS}',
      'properties.sasl.jaas.config' = '${file:/run/secrets/jaas}',
      'json.ignore-parse-errors' = '${env:LENIENT}'); SELECT a FROM t"""
    table = bind_query(script(text)).tables["t"]
    assert table.properties["sasl.jaas.config"] == "${file:/run/secrets/jaas}"
    assert table.value_format is not None
    assert table.value_format.texts["ignore-parse-errors"] == "${env:LENIENT}"


def test_what_planning_needs_to_know_is_no_reference() -> None:
    text = """CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'format' = 'json', 'topic' = 't',
      'properties.bootstrap.servers' = 'b', 'scan.startup.mode' = '${env:MODE}');"""
    with pytest.raises(SqlErrors) as problems:
        bind_query(script(text, "SELECT a FROM t"))
    (error,) = problems.value.errors
    assert error.code == "OPTION_VALUE"
    assert error.hint == "write the value itself: references are looked up when the job starts"


def test_positions_of_scans() -> None:
    project = query("SELECT a1\nFROM\n  A")
    assert isinstance(project.input, Scan)
    assert project.input.position == Position(7, 3)
