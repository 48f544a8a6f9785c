-- Three best products of each category.
CREATE TABLE sales (
  category STRING, product STRING, quantity INT
) WITH (
  'connector' = 'kafka', 'topic' = 'sales', 'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE best_sellers (
  category STRING, rownum BIGINT, product STRING, sold BIGINT,
  PRIMARY KEY (category, rownum) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'best_sellers', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json'
);
INSERT INTO best_sellers
SELECT category, row_num, product, sold
FROM (
  SELECT category, product, sold,
    ROW_NUMBER() OVER (PARTITION BY category ORDER BY sold DESC, product ASC) AS row_num
  FROM (SELECT category, product, SUM(CAST(quantity AS BIGINT)) AS sold FROM sales GROUP BY category, product))
WHERE row_num <= 3;
