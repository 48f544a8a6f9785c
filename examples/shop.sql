-- Orders with their product's name and price as they were when each order was placed.
--
-- The shop of Flink's documentation. `rejoin demo` runs this file; README.md beside it says how to
-- run it by hand.

SET 'pipeline.name' = 'shop';
-- Debezium's times are epoch milliseconds; they become timestamps in this time zone.
SET 'table.local-time-zone' = 'UTC';

CREATE TABLE orders (
  order_id STRING,
  product_id STRING,
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092',
  'value.format' = 'json',
  'rejoin.dead-letter.topic' = 'shop_dead_letters'
);

-- A versioned table: a primary key and an event time over a changelog.
CREATE TABLE product_changelog (
  product_id STRING,
  product_name STRING,
  product_price DECIMAL(10, 4),
  update_time TIMESTAMP(3) METADATA FROM 'value.source.timestamp' VIRTUAL,
  PRIMARY KEY (product_id) NOT ENFORCED,
  WATERMARK FOR update_time AS update_time
) WITH (
  'connector' = 'kafka',
  'topic' = 'products',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092',
  'value.format' = 'debezium-json',
  'rejoin.dead-letter.topic' = 'shop_dead_letters'
);

CREATE TABLE enriched_orders (
  order_id STRING,
  order_time TIMESTAMP(3),
  product_name STRING,
  product_time TIMESTAMP(3),
  price DECIMAL(10, 4)
) WITH (
  'connector' = 'kafka',
  'topic' = 'enriched_orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'value.format' = 'json'
);

INSERT INTO enriched_orders
SELECT
  O.order_id,
  O.order_time,
  P.product_name,
  P.update_time AS product_time,
  P.product_price AS price
FROM orders AS O
LEFT JOIN product_changelog FOR SYSTEM_TIME AS OF O.order_time AS P
  ON O.product_id = P.product_id;
