SET 'rejoin.bootstrap.timeout' = '10 min';
SET 'rejoin.bootstrap.on-timeout' = 'go';

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

CREATE TABLE rates_history (
  currency STRING,
  rate BIGINT,
  rate_time TIMESTAMP(3),
  proc AS PROCTIME(),
  WATERMARK FOR rate_time AS rate_time
) WITH (
  'connector' = 'kafka',
  'topic' = 'rates_history',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORAL TABLE FUNCTION Rates FOR rates_history
TIME ATTRIBUTE proc PRIMARY KEY (currency);

SELECT o.order_id, o.amount * r.rate AS amount
FROM orders AS o, LATERAL TABLE (Rates(o.proc)) AS r WHERE o.currency = r.currency;
