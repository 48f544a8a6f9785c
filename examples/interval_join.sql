-- Orders that were shipped within four hours, and those that were not.
--
-- An interval join compares event times, so state is bounded: a row goes as soon as the watermarks
-- say that no partner can come any more, and only then is an order known to be unshipped.

CREATE TABLE orders (
  order_id INT,
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json'
);

CREATE TABLE shipments (
  shipment_id INT,
  order_id INT,
  ship_time TIMESTAMP(3),
  WATERMARK FOR ship_time AS ship_time - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'shipments',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json'
);

CREATE TABLE shipped_orders (
  order_id INT,
  shipment_id INT,
  ship_time TIMESTAMP(3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'shipped_orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json'
);

INSERT INTO shipped_orders
SELECT o.order_id, s.shipment_id, s.ship_time
FROM orders AS o LEFT JOIN shipments AS s
  ON o.order_id = s.order_id
  AND s.ship_time BETWEEN o.order_time AND o.order_time + INTERVAL '4' HOUR;
