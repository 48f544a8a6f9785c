-- the left side is updated and deleted: what its rows were joined with is remembered
SET 'table.exec.state.ttl' = '30 d';
CREATE TABLE orders (
  order_id BIGINT,
  currency STRING,
  amount BIGINT,
  order_time TIMESTAMP(3),
  PRIMARY KEY (order_id) NOT ENFORCED,
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
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
  order_id BIGINT,
  amount BIGINT,
  rate BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = 'converted',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json'
);

INSERT INTO converted
SELECT o.order_id, o.amount, r.rate
FROM orders AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.order_time AS r
  ON o.currency = r.currency;
