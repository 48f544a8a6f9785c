-- Orders, their lines and products: a chain of regular joins and a total, in a changing world.
CREATE TABLE orders (order_id INT, customer STRING, PRIMARY KEY (order_id) NOT ENFORCED) WITH (
  'connector' = 'kafka', 'topic' = 'pg.public.orders', 'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json');
CREATE TABLE order_lines (order_id INT, line_no INT, sku STRING, qty INT, PRIMARY KEY (order_id, line_no) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'order_lines', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE products (sku STRING, price DECIMAL(8, 2), PRIMARY KEY (sku) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'products', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE order_totals (order_id INT, customer STRING, n_lines BIGINT, total DECIMAL(38, 2), unpriced BIGINT,
  PRIMARY KEY (order_id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'order_totals', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
INSERT INTO order_totals
SELECT o.order_id, MAX(o.customer), COUNT(*), CAST(SUM(l.qty * p.price) AS DECIMAL(38, 2)),
       SUM(CASE WHEN p.sku IS NULL THEN CAST(1 AS BIGINT) ELSE 0 END)
FROM orders o
JOIN order_lines l ON o.order_id = l.order_id
LEFT JOIN products p ON l.sku = p.sku
GROUP BY o.order_id;
