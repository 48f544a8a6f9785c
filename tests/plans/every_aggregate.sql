-- every aggregate function, over rows that come and go and over rows that only come
CREATE TABLE customers (
  id INT,
  since DATE,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'customers',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);
CREATE TABLE orders (
  id INT,
  customer INT,
  item STRING,
  amount DOUBLE,
  price DECIMAL(10, 2),
  paid BOOLEAN
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);
CREATE TABLE sales (
  since DATE, orders BIGINT, items BIGINT, total DOUBLE, mean DECIMAL(38, 6), cheapest DECIMAL(10, 2), dearest DECIMAL(10, 2),
  deviation DOUBLE, sampled DECIMAL(38, 6), variance INT, paid_variance DOUBLE,
  listed STRING, paid_items STRING, different STRING, baskets ARRAY<STRING>, ids ARRAY<INT>,
  first_item STRING, last_item STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'sales',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json'
);
CREATE TABLE ends (first_id INT, last_id INT, items STRING, ids ARRAY<INT>, last_different INT)
WITH (
  'connector' = 'kafka',
  'topic' = 'ends',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json'
);

INSERT INTO sales
SELECT c.since, COUNT(*), COUNT(DISTINCT o.item), SUM(o.amount), AVG(o.price), MIN(o.price), MAX(o.price),
  STDDEV_POP(o.amount), STDDEV(o.price), VAR_POP(o.id), VARIANCE(o.amount) FILTER (WHERE o.paid),
  LISTAGG(o.item), LISTAGG(o.item, '; ') FILTER (WHERE o.paid), LISTAGG(DISTINCT o.item, '|'),
  ARRAY_AGG(o.item), ARRAY_AGG(DISTINCT o.id) IGNORE NULLS,
  FIRST_VALUE(o.item), LAST_VALUE(o.item)
FROM orders AS o JOIN customers AS c ON o.customer = c.id
GROUP BY c.since;

INSERT INTO ends
SELECT FIRST_VALUE(id), LAST_VALUE(id), LISTAGG(item), ARRAY_AGG(id), LAST_VALUE(DISTINCT id)
FROM orders;
