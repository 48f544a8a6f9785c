-- Revenue per country and number of buyers, from payments that may be sent twice.
--
-- The first row of each payment_id counts, whatever comes again; the totals are those of the rows
-- that are joined now, and follow a user who moves to another country.

SET 'table.exec.state.ttl' = '30 d';

CREATE TABLE payments (
  payment_id STRING,
  user_id INT,
  amount DECIMAL(10, 2),
  proctime AS PROCTIME()
) WITH (
  'connector' = 'kafka',
  'topic' = 'payments',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json'
);

CREATE TABLE users (
  user_id INT,
  country STRING,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'users',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

CREATE TABLE revenue (
  country STRING,
  buyers BIGINT,
  amount DECIMAL(38, 2),
  PRIMARY KEY (country) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'revenue',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

CREATE VIEW payments_once AS
SELECT payment_id, user_id, amount
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY payment_id ORDER BY proctime) AS n
  FROM payments
)
WHERE n = 1;

INSERT INTO revenue
SELECT u.country, COUNT(DISTINCT u.user_id) AS buyers, SUM(p.amount) AS amount
FROM payments_once AS p JOIN users AS u ON p.user_id = u.user_id
GROUP BY u.country;
