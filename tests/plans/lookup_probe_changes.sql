-- the left side is updated and deleted: what its rows were joined with is remembered
CREATE TABLE orders (
  order_id BIGINT,
  currency STRING,
  amount BIGINT,
  proc AS PROCTIME(),
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

CREATE TABLE rates (
  currency STRING,
  rate BIGINT,
  rate_time TIMESTAMP(3),
  PRIMARY KEY (currency) NOT ENFORCED,
  WATERMARK FOR rate_time AS rate_time
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'rates',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

CREATE TABLE converted (
  total BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = 'converted',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json'
);

INSERT INTO converted
SELECT SUM(o.amount * r.rate)
FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.proc AS r
  ON o.currency = r.currency;
