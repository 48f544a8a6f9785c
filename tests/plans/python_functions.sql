-- Python computes columns above the join, and what of WHERE needs it
CREATE TABLE orders (id INT, product INT, at STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE products (product INT, name STRING, PRIMARY KEY (product) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'products', 'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE named (id INT, is_property BOOLEAN, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'named', 'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE FUNCTION is_property AS 'spark_jobs.options.spark.is_property' LANGUAGE PYTHON;
INSERT INTO named SELECT o.id, is_property(p.name) FROM orders AS o LEFT JOIN products AS p ON o.product = p.product
WHERE is_property(UPPER(p.name)) IS NOT TRUE AND o.at > '2024';
