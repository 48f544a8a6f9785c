-- both join keys are part of the primary keys: no normaliser; the order of changes is kept
CREATE TABLE users (
  user_id INT,
  name STRING,
  city STRING,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'users',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

CREATE TABLE orders (
  user_id INT,
  order_id BIGINT,
  product STRING,
  PRIMARY KEY (user_id, order_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

CREATE TABLE enriched (
  user_id INT,
  order_id BIGINT,
  product STRING,
  city STRING,
  PRIMARY KEY (user_id, order_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'enriched',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO enriched
SELECT o.user_id, o.order_id, o.product, u.city
FROM orders AS o LEFT JOIN users AS u ON u.user_id = o.user_id;
