-- Customers and purchases from MySQL (Debezium); how much each customer has spent, those without
-- purchases included.
SET 'execution.runtime-mode' = 'streaming';
SET 'table.exec.state.ttl' = '36 h';

CREATE TABLE customers (
  id          INT NOT NULL,
  first_name  VARCHAR(64),
  last_name   VARCHAR(64),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic'     = 'dbserver1.inventory.customers',
  'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format'    = 'debezium-json',
  'debezium-json.ignore-parse-errors' = 'true'
);

CREATE TABLE purchases (
  id INT NOT NULL,
  customer_id INT,
  amount DECIMAL(10, 2),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic'     = 'dbserver1.inventory.purchases',
  'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format'    = 'debezium-json'
);

CREATE TABLE customer_totals (
  customer_id INT,
  `name` STRING,
  n_purchases BIGINT,
  total DECIMAL(38, 2),
  `largest` DECIMAL(10, 2),
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'customer_totals',
  'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO customer_totals
SELECT c.id, MAX(CONCAT(c.first_name, ' ', UPPER(c.last_name))), COUNT(p.id),
       COALESCE(SUM(p.amount), 0), MAX(p.amount)
FROM customers c
LEFT JOIN purchases p ON p.customer_id = c.id
GROUP BY c.id;
