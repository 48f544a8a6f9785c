-- the first rows and an aggregate for each shop, and a value that is compared by another condition than =
CREATE TABLE shops (k INT, name STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'shops', 'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE sales (id INT, k INT, price INT)
WITH ('connector' = 'kafka', 'topic' = 'sales', 'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json');
SELECT s.name, b.id, b.price, t.n, (SELECT MAX(price) FROM sales AS o WHERE o.k > s.k) AS later
FROM shops AS s,
  LATERAL (SELECT id, price FROM sales WHERE sales.k = s.k ORDER BY price DESC LIMIT 2) AS b,
  LATERAL (SELECT COUNT(*) AS n FROM sales WHERE sales.k = s.k) AS t;
