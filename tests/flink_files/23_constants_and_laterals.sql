-- Codes with labels that stand in the query, and for each shop what it sold: VALUES, LATERAL, subqueries as values.
SET 'pipeline.name' = 'shop report';
CREATE TABLE orders (order_id BIGINT, shop_id INT, status INT, cents BIGINT, PRIMARY KEY (order_id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE shops (shop_id INT, name STRING, PRIMARY KEY (shop_id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'shops', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE labelled (order_id BIGINT, label STRING) WITH (
  'connector' = 'kafka', 'topic' = 'labelled', 'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'debezium-json');
CREATE TABLE turnover (shop_id INT, name STRING, orders BIGINT, cents BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'turnover', 'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'debezium-json');
CREATE TABLE sold (shop_id INT, cents BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'sold', 'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'debezium-json');
CREATE TABLE above_others (order_id BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'above_others', 'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'debezium-json');
CREATE TABLE known_shops (shop_id INT) WITH (
  'connector' = 'kafka', 'topic' = 'known_shops', 'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'debezium-json');

CREATE VIEW labels AS SELECT * FROM (VALUES (1, 'new'), (2, 'paid'), (3, 'shipped')) AS t (code, label);

INSERT INTO labelled
SELECT o.order_id, COALESCE(l.label, 'unknown') FROM orders AS o LEFT JOIN labels AS l ON o.status = l.code;

INSERT INTO turnover
SELECT s.shop_id, s.name,
  (SELECT COUNT(*) FROM orders AS o WHERE o.shop_id = s.shop_id),
  (SELECT COALESCE(SUM(o.cents), 0) FROM orders AS o WHERE o.shop_id = s.shop_id)
FROM shops AS s;

INSERT INTO sold
SELECT s.shop_id, p.cents FROM shops AS s,
LATERAL (SELECT DISTINCT cents FROM orders AS o WHERE o.shop_id = s.shop_id) AS p;

INSERT INTO above_others
SELECT o.order_id FROM orders AS o WHERE o.cents > (SELECT MAX(p.cents) FROM orders AS p WHERE p.shop_id < o.shop_id);

INSERT INTO known_shops
SELECT shop_id FROM shops WHERE name IS NOT NULL UNION (VALUES (8), (9));
