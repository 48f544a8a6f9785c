-- the first join's rows keep their event time, so it can be the probe side of the second
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

CREATE TABLE rates (
  currency STRING,
  rate BIGINT,
  country STRING,
  rate_time TIMESTAMP(3),
  PRIMARY KEY (currency) NOT ENFORCED,
  WATERMARK FOR rate_time AS rate_time - INTERVAL '10' SECOND
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'rates',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

CREATE TABLE countries (
  country STRING,
  area STRING,
  since TIMESTAMP(3),
  PRIMARY KEY (country) NOT ENFORCED,
  WATERMARK FOR since AS since
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'countries',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

SELECT o.order_id, c.area
FROM orders AS o
JOIN rates FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency
LEFT JOIN countries FOR SYSTEM_TIME AS OF o.order_time AS c ON r.country = c.country;
