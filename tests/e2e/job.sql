-- Filled in by tests/e2e/job.py: the addresses, and what differs between JSON and Avro.
SET 'pipeline.name' = 'e2e';
SET 'table.local-time-zone' = 'UTC';

CREATE TABLE customers (
  customer_id BIGINT,
  name STRING,
  tier INT,
  balance DECIMAL(12, 2),
  profile STRING,
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH (
  'topic' = 'e2e.public.customers',
  ${source}
);

CREATE TABLE products (
  product_id STRING,
  title STRING,
  price DECIMAL(10, 4),
  updated_at TIMESTAMP_LTZ(6),
  updated AS CAST(updated_at AS TIMESTAMP_LTZ(3)),
  PRIMARY KEY (product_id) NOT ENFORCED,
  WATERMARK FOR updated AS updated - INTERVAL '2' DAY
) WITH (
  'topic' = 'e2e.public.products',
  ${source}
);

-- channel is added to the database's table while the job runs; events that leave note as it was do
-- not carry it where it is large, changes of order_id neither
CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  product_id STRING,
  quantity INT,
  amount DECIMAL(12, 2),
  placed_at TIMESTAMP_LTZ(6),
  note STRING,
  channel STRING,
  placed AS CAST(placed_at AS TIMESTAMP_LTZ(3)),
  PRIMARY KEY (order_id) NOT ENFORCED,
  WATERMARK FOR placed AS placed - INTERVAL '2' DAY
) WITH (
  'topic' = 'e2e.public.orders',
  'rejoin.debezium.key-changes' = 'heal',
  ${source}
);

CREATE TABLE order_details (
  order_id BIGINT,
  quantity INT,
  amount DECIMAL(12, 2),
  placed_at TIMESTAMP_LTZ(6),
  channel STRING,
  note STRING,
  customer_id BIGINT,
  name STRING,
  tier INT,
  balance DECIMAL(12, 2),
  profile STRING,
  product_id STRING,
  title STRING,
  price DECIMAL(10, 4),
  updated_at TIMESTAMP_LTZ(6),
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH (
  'topic' = 'order_details',
  ${sink}
);

CREATE TABLE customer_totals (
  customer_id BIGINT,
  orders BIGINT,
  items INT,
  total DECIMAL(38, 2),
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH (
  'topic' = 'customer_totals',
  ${sink}
);

-- products whose row was changed within six hours of an order, by the times in the rows
CREATE TABLE fresh_products (
  order_id BIGINT,
  product_id STRING,
  amount DECIMAL(12, 2),
  placed_at TIMESTAMP_LTZ(6),
  price DECIMAL(10, 4),
  updated_at TIMESTAMP_LTZ(6),
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH (
  'topic' = 'fresh_products',
  ${sink}
);

INSERT INTO order_details
SELECT o.order_id, o.quantity, o.amount, o.placed_at, o.channel, o.note,
  o.customer_id, c.name, c.tier, c.balance, c.profile,
  o.product_id, p.title, p.price, p.updated_at
FROM orders AS o
LEFT JOIN customers AS c ON o.customer_id = c.customer_id
LEFT JOIN products AS p ON o.product_id = p.product_id;

INSERT INTO customer_totals
SELECT c.customer_id, COUNT(o.order_id) AS orders, SUM(o.quantity) AS items, SUM(o.amount) AS total
FROM customers AS c
JOIN orders AS o ON o.customer_id = c.customer_id
GROUP BY c.customer_id;

INSERT INTO fresh_products
SELECT o.order_id, o.product_id, o.amount, o.placed_at, p.price, p.updated_at
FROM orders AS o
JOIN products AS p ON p.product_id = o.product_id
  AND p.updated BETWEEN o.placed - INTERVAL '6' HOUR AND o.placed + INTERVAL '6' HOUR;
