-- Temporal joins whose orders change, as jobs had them before such orders were remembered.
SET 'rejoin.key-groups' = '2';
SET 'rejoin.parallelism' = '1';

CREATE TABLE orders (
  order_id INT, currency STRING, amount INT, ordered_at TIMESTAMP(3), proc AS PROCTIME(),
  PRIMARY KEY (order_id) NOT ENFORCED, WATERMARK FOR ordered_at AS ordered_at
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE rates (
  currency STRING, rate INT, rate_time TIMESTAMP(3), PRIMARY KEY (currency) NOT ENFORCED,
  WATERMARK FOR rate_time AS rate_time
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'rates',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE now_ (order_id INT, amount INT, rate INT) WITH (
  'connector' = 'kafka', 'topic' = 'now_',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json'
);
INSERT INTO now_
SELECT o.order_id, o.amount, r.rate
FROM orders AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.proc AS r ON o.currency = r.currency;

CREATE TABLE then_ (order_id INT, amount INT, rate INT) WITH (
  'connector' = 'kafka', 'topic' = 'then_',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json'
);
INSERT INTO then_
SELECT o.order_id, o.amount, r.rate
FROM orders AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ordered_at AS r ON o.currency = r.currency;
