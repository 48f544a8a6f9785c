-- Orders with the names of their users, corrected whenever either side changes.
--
-- A regular join keeps both sides. An order without a user leaves at once with NULL; when the user
-- comes or is renamed, the row that was wrong is retracted and the right one follows.

-- Nothing is kept for ever: what has not been touched for a week is forgotten.
SET 'table.exec.state.ttl' = '7 d';

CREATE TABLE orders (
  order_id INT,
  user_id INT,
  amount DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json'
);

-- Keyed records: the newest value of a key counts, a null value deletes it.
CREATE TABLE users (
  user_id INT,
  name STRING,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'users',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

-- Additions and retractions in Flink's wire form: "op": "c" and "op": "d".
CREATE TABLE named_orders (
  order_id INT,
  name STRING,
  amount DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka',
  'topic' = 'named_orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'debezium-json'
);

INSERT INTO named_orders
SELECT o.order_id, u.name, o.amount
FROM orders AS o LEFT JOIN users AS u ON o.user_id = u.user_id;
