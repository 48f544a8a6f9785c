-- Orders in yen, at the rate that was valid when each was placed.
--
-- An event-time temporal join: it waits until both watermarks have passed an order's time, takes the
-- version of the rate as of that time, and never corrects a result afterwards.

SET 'table.local-time-zone' = 'UTC';
-- A partition of rates that is quiet for a minute does not hold the orders back.
SET 'table.exec.source.idle-timeout' = '1 min';

CREATE TABLE orders (
  order_id INT,
  currency STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json'
);

-- A versioned table: a primary key and an event time over keyed records.
CREATE TABLE currency_rates (
  currency STRING,
  rate DECIMAL(10, 2),
  valid_from TIMESTAMP(3),
  PRIMARY KEY (currency) NOT ENFORCED,
  WATERMARK FOR valid_from AS valid_from
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'currency_rates',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

CREATE TABLE orders_in_yen (
  order_id INT,
  order_time TIMESTAMP(3),
  yen DECIMAL(20, 4)
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders_in_yen',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json'
);

INSERT INTO orders_in_yen
SELECT o.order_id, o.order_time, o.amount * r.rate AS yen
FROM orders AS o
JOIN currency_rates FOR SYSTEM_TIME AS OF o.order_time AS r
  ON o.currency = r.currency;
