SET 'table.exec.source.idle-timeout' = '1 min';
SET 'table.exec.interval-join.min-cleanup-interval' = '30 s';

CREATE TABLE orders (
  order_id STRING,
  currency STRING,
  amount BIGINT,
  order_time TIMESTAMP(3),
  proc AS PROCTIME(),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE shipments (
  order_id STRING,
  carrier STRING,
  ship_time TIMESTAMP(3),
  proc AS PROCTIME(),
  WATERMARK FOR ship_time AS ship_time
) WITH (
  'connector' = 'kafka',
  'topic' = 'shipments',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE shipped (
  order_id STRING,
  carrier STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'shipped',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'debezium-json'
);

INSERT INTO shipped
SELECT /*+ EARLY_FIRE('delay' = '10 s') */ o.order_id, s.carrier
FROM orders AS o LEFT JOIN shipments AS s
ON o.order_id = s.order_id AND s.ship_time BETWEEN o.order_time AND o.order_time + INTERVAL '4' HOUR;
