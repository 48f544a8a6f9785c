-- Every state machine and every layout of its state in one job; its records stand beside it.
-- At-least-once: the ledger of exactly-once sinks is kept by the broker, which a test makes anew.
SET 'rejoin.key-groups' = '2';
SET 'rejoin.parallelism' = '1';
SET 'rejoin.trigger-interval' = '1 s';

CREATE TABLE customers (
  id INT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'v1_customers',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE orders (
  order_id BIGINT, customer_id INT, amount BIGINT, note STRING,
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'v1_orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE a (
  a1 INT, a2 BIGINT, a3 STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_a',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE b (
  b1 INT, b2 BIGINT, b3 STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_b',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE probes (
  order_id STRING, currency STRING, amount BIGINT, order_time TIMESTAMP(3), proc AS PROCTIME(),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_probes',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE shipments (
  order_id STRING, carrier STRING, ship_time TIMESTAMP(3),
  WATERMARK FOR ship_time AS ship_time
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_shipments',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE rates (
  currency STRING, rate BIGINT, rate_time TIMESTAMP(3), PRIMARY KEY (currency) NOT ENFORCED,
  WATERMARK FOR rate_time AS rate_time
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'v1_rates',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE claims (
  currency STRING, order_id STRING, `at` TIMESTAMP(3), WATERMARK FOR `at` AS `at`
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_claims',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json', 'scan.startup.mode' = 'earliest-offset'
);

CREATE TABLE named (
  order_id BIGINT, amount BIGINT, name STRING, PRIMARY KEY (order_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'v1_named',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO named
SELECT o.order_id, o.amount, c.name
FROM orders AS o LEFT JOIN customers AS c ON o.customer_id = c.id;

CREATE TABLE residual_full (
  a1 INT, a2 BIGINT, a3 STRING, b1 INT, b2 BIGINT, b3 STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_residual_full',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO residual_full
SELECT * FROM a FULL JOIN b ON a1 = b1 AND a2 > b2;

CREATE TABLE outer_plain (
  a1 INT, a2 BIGINT, b1 INT, b2 BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_outer_plain',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO outer_plain
SELECT a1, a2, b1, b2 FROM a LEFT JOIN b ON a1 = b1;

CREATE TABLE residual_ttl (
  order_id BIGINT, amount BIGINT, b2 BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_residual_ttl',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO residual_ttl
SELECT /*+ STATE_TTL('o' = '36500 d', 'b' = '36500 d') */ o.order_id, o.amount, b.b2
FROM orders AS o LEFT JOIN b ON o.customer_id = b.b1 AND o.amount > b.b2;

CREATE TABLE semi (
  a1 INT, a2 BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_semi',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO semi
SELECT a1, a2 FROM a WHERE EXISTS (SELECT * FROM customers WHERE id = a1 AND name <> a3);

CREATE TABLE anti (
  b1 INT, b2 BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_anti',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO anti
SELECT b1, b2 FROM b WHERE NOT EXISTS (SELECT * FROM a WHERE a1 = b1);

CREATE TABLE multi (
  name STRING, a2 BIGINT, b2 BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_multi',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO multi
SELECT c.name, a2, b2 FROM customers AS c JOIN a ON c.id = a1 LEFT JOIN b ON a1 = b1 AND b2 > a2;

CREATE TABLE shipped (
  order_id STRING, amount BIGINT, carrier STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_shipped',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO shipped
SELECT p.order_id, p.amount, s.carrier FROM probes AS p LEFT JOIN shipments AS s
ON p.order_id = s.order_id
AND s.ship_time BETWEEN p.order_time AND p.order_time + INTERVAL '1' HOUR;

CREATE TABLE priced (
  order_id STRING, amount BIGINT, rate BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_priced',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO priced
SELECT p.order_id, p.amount, r.rate
FROM probes AS p LEFT JOIN rates FOR SYSTEM_TIME AS OF p.order_time AS r ON p.currency = r.currency;

CREATE TABLE looked_up (
  order_id STRING, rate BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_looked_up',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO looked_up
SELECT p.order_id, r.rate
FROM probes AS p LEFT JOIN rates FOR SYSTEM_TIME AS OF p.proc AS r ON p.currency = r.currency;

CREATE TABLE snapshot (
  order_id STRING, rate BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_snapshot',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO snapshot
SELECT p.order_id, r.rate FROM probes AS p JOIN LATERAL TABLE (SNAPSHOT(
  input => TABLE rates,
  load_completed_condition => 'user_time',
  load_completed_time => CAST(TIMESTAMP '2024-01-01 13:00:00' AS TIMESTAMP_LTZ(3))
)) AS r ON p.currency = r.currency;

CREATE TABLE first_probe (
  currency STRING, order_id STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_first_probe',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO first_probe
SELECT currency, order_id FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY order_time) AS n FROM probes
) WHERE n = 1;

CREATE TABLE last_probe (
  currency STRING, order_id STRING, PRIMARY KEY (currency) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'v1_last_probe',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO last_probe
SELECT currency, order_id FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY order_time DESC) AS n FROM probes
) WHERE n = 1;

CREATE TABLE once (
  currency STRING, order_id STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_once',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO once
SELECT currency, order_id FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY proc) AS n FROM probes
) WHERE n = 1;

CREATE TABLE normalized (
  id INT, name STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'v1_normalized',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO normalized
SELECT id, UPPER(name) FROM customers WHERE city <> 'Oslo';

CREATE TABLE sums (
  city STRING, n BIGINT, n3 BIGINT, low BIGINT, high STRING, total BIGINT, mean BIGINT,
  PRIMARY KEY (city) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'v1_sums',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO sums
SELECT c.city, COUNT(*), COUNT(DISTINCT a3), MIN(a2), MAX(a3), SUM(a2), AVG(a2)
FROM a JOIN customers AS c ON a1 = c.id GROUP BY c.city;

CREATE TABLE by_customer (
  id INT, amount BIGINT, order_id BIGINT, PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'v1_by_customer',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO by_customer
SELECT c.id, o.amount, o.order_id FROM orders AS o JOIN customers AS c ON o.customer_id = c.id;

CREATE TABLE claimed (
  currency STRING, order_id STRING, PRIMARY KEY (currency) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'v1_claimed',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json', 'sink.delivery-guarantee' = 'at-least-once'
);
INSERT INTO claimed
SELECT currency, order_id FROM claims ON CONFLICT DO NOTHING;
