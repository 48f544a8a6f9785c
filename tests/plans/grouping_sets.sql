-- three aggregates over the same rows, and a subquery beside the functions
CREATE TABLE sales (
  city STRING,
  item STRING,
  amount INT
) WITH (
  'connector' = 'kafka',
  'topic' = 'sales',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

SELECT city, item, SUM(amount) AS total, GROUPING(city, item) AS level
FROM sales
GROUP BY ROLLUP (city, item)
HAVING SUM(amount) >= (SELECT MIN(amount) FROM sales);
