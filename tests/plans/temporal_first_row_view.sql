-- a first row is known once the watermark has passed it, which goes on to the join
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

CREATE VIEW versions AS
SELECT currency, rate, rate_time FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY rate_time) AS n
  FROM rates_history
) WHERE n = 1;

SELECT o.order_id, o.amount * r.rate AS amount
FROM orders AS o LEFT JOIN versions FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency;
