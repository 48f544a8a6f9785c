-- Regions by revenue; CTEs, a view over a view, USING.
CREATE TABLE stores (
  store_id INT, region STRING, PRIMARY KEY (store_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'stores', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE receipts (
  receipt_id INT, store_id INT, lines ROW<net DECIMAL(10, 2), vat DECIMAL(10, 2)>
) WITH (
  'connector' = 'kafka', 'topic' = 'receipts', 'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE regions (
  region STRING, receipts BIGINT, revenue DECIMAL(38, 2), grade STRING,
  PRIMARY KEY (region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'regions', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json'
);
CREATE VIEW gross AS SELECT receipt_id, store_id, lines.net + lines.vat AS amount FROM receipts;
CREATE VIEW IF NOT EXISTS gross_of_regions (region, amount) AS
SELECT region, amount FROM gross INNER JOIN stores USING (store_id);

INSERT INTO regions
WITH sums AS (
  SELECT region, COUNT(*) AS n, SUM(amount) AS revenue FROM gross_of_regions GROUP BY region
), graded AS (
  SELECT s.*, CASE WHEN revenue >= 100 THEN 'A' WHEN revenue >= 50 THEN 'B' ELSE 'C' END AS grade FROM sums s
)
SELECT region, n, revenue, grade FROM graded WHERE n > 0;
