-- Purchases with their customers, both captured from PostgreSQL by Debezium, as a keyed topic.
--
-- A change of a customer changes all of its purchases; a purchase that is deleted becomes a
-- tombstone. The tables are those of deploy/compose/shop-tables.sql, here as Kafka Connect's JSON
-- converter writes them ('decimal.handling.mode' = 'string'); docs/formats.md has Avro and the rest.

SET 'table.local-time-zone' = 'UTC';

-- REPLICA IDENTITY FULL in the database: the row before a change is complete.
CREATE TABLE customers (
  customer_id BIGINT,
  name STRING,
  address STRING,
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'shop.public.customers',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'debezium-json',
  'rejoin.debezium.replica-identity' = 'full',
  'rejoin.dead-letter.topic' = 'cdc_dead_letters'
);

-- The default identity: what stands before a change is not trusted, the key is enough.
CREATE TABLE purchases (
  purchase_id BIGINT,
  customer_id BIGINT,
  amount DECIMAL(12, 2),
  changed_at TIMESTAMP(3) METADATA FROM 'value.source.timestamp' VIRTUAL,
  PRIMARY KEY (purchase_id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'shop.public.purchases',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'debezium-json',
  'rejoin.dead-letter.topic' = 'cdc_dead_letters'
);

CREATE TABLE enriched_purchases (
  purchase_id BIGINT,
  name STRING,
  address STRING,
  amount DECIMAL(12, 2),
  changed_at TIMESTAMP(3),
  PRIMARY KEY (purchase_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'enriched_purchases',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO enriched_purchases
SELECT p.purchase_id, c.name, c.address, p.amount, p.changed_at
FROM purchases AS p LEFT JOIN customers AS c ON p.customer_id = c.customer_id;
