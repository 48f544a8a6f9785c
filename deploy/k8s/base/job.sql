-- The shop of examples/shop.sql, also for docker-compose.yml; put your own job here. Secrets stay out:
-- ${file:/run/secrets/rejoin/...}.
SET 'pipeline.name' = 'shop';
SET 'table.local-time-zone' = 'UTC';

CREATE TABLE orders (
  order_id STRING,
  product_id STRING,
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = '${env:KAFKA_SERVERS}',
  'value.format' = 'json',
  'rejoin.dead-letter.topic' = 'shop_dead_letters'
);

CREATE TABLE product_changelog (
  product_id STRING,
  product_name STRING,
  product_price DECIMAL(10, 4),
  update_time TIMESTAMP(3) METADATA FROM 'value.source.timestamp' VIRTUAL,
  PRIMARY KEY (product_id) NOT ENFORCED,
  WATERMARK FOR update_time AS update_time
) WITH (
  'connector' = 'kafka',
  'topic' = 'products',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = '${env:KAFKA_SERVERS}',
  'value.format' = 'debezium-json',
  'rejoin.dead-letter.topic' = 'shop_dead_letters'
);

CREATE TABLE enriched_orders (
  order_id STRING,
  order_time TIMESTAMP(3),
  product_name STRING,
  product_time TIMESTAMP(3),
  price DECIMAL(10, 4)
) WITH (
  'connector' = 'kafka',
  'topic' = 'enriched_orders',
  'properties.bootstrap.servers' = '${env:KAFKA_SERVERS}',
  'value.format' = 'json'
);

INSERT INTO enriched_orders
SELECT O.order_id, O.order_time, P.product_name, P.update_time AS product_time, P.product_price AS price
FROM orders AS O
LEFT JOIN product_changelog FOR SYSTEM_TIME AS OF O.order_time AS P
  ON O.product_id = P.product_id;
