-- joins with constants keep nothing; elsewhere they are an input
CREATE TABLE orders (id INT, status INT, at TIMESTAMP(3), WATERMARK FOR at AS at)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json');
CREATE VIEW codes (code, name) AS VALUES (1, 'new'), (2, 'paid'), (3, CAST(NULL AS STRING));
SELECT o.id, c.name, t.tag, o.at
FROM orders AS o LEFT JOIN codes AS c ON o.status = c.code AND c.name <> 'new', (SELECT 'x' AS tag) AS t
WHERE o.status NOT IN (VALUES (7), (8))
UNION ALL SELECT code, name, 'y', CAST(NULL AS TIMESTAMP(3)) FROM codes;
