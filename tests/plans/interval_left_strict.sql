SET 'table.exec.source.idle-timeout' = '1 min';
SET 'rejoin.interval-join.min-cleanup-rule' = 'half';

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

SELECT o.order_id, s.carrier FROM orders AS o LEFT JOIN shipments AS s
ON o.order_id = s.order_id AND s.ship_time > o.order_time - INTERVAL '1' MINUTE
AND s.ship_time < o.order_time + INTERVAL '4' HOUR AND s.carrier <> 'none';
