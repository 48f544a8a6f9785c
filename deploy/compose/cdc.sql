-- The changes that Debezium captures from the tables of shop-tables.sql, joined. deploy/compose/clerk.sql
-- makes them; python -m spark_jobs.demo.capture judges what comes out.
SET 'pipeline.name' = 'cdc';
SET 'table.local-time-zone' = 'UTC';
-- a payment may be changed for an hour, a purchase for two
SET 'table.exec.interval-join.min-cleanup-interval' = '1 h';

CREATE TABLE customers (
  customer_id BIGINT,
  name STRING,
  address STRING,
  changed_at TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL,
  PRIMARY KEY (customer_id) NOT ENFORCED,
  WATERMARK FOR changed_at AS changed_at - INTERVAL '0.001' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'shop.public.customers',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = '${env:KAFKA_SERVERS}',
  'value.format' = 'debezium-avro-confluent',
  'value.debezium-avro-confluent.url' = '${env:REGISTRY_URL}',
  'rejoin.debezium.replica-identity' = 'full',
  'rejoin.dead-letter.topic' = 'cdc_dead_letters'
);

CREATE TABLE purchases (
  purchase_id BIGINT,
  customer_id BIGINT,
  amount DECIMAL(12, 2),
  changed_at TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL,
  PRIMARY KEY (purchase_id) NOT ENFORCED,
  WATERMARK FOR changed_at AS changed_at - INTERVAL '0.001' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'shop.public.purchases',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = '${env:KAFKA_SERVERS}',
  'value.format' = 'debezium-avro-confluent',
  'value.debezium-avro-confluent.url' = '${env:REGISTRY_URL}',
  'rejoin.dead-letter.topic' = 'cdc_dead_letters'
);

-- The same topic by the time of the purchase, which an interval join compares with that of the payment.
CREATE TABLE bought (
  purchase_id BIGINT,
  bought_at TIMESTAMP_LTZ(3),
  PRIMARY KEY (purchase_id) NOT ENFORCED,
  WATERMARK FOR bought_at AS bought_at - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'shop.public.purchases',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = '${env:KAFKA_SERVERS}',
  'value.format' = 'debezium-avro-confluent',
  'value.debezium-avro-confluent.url' = '${env:REGISTRY_URL}',
  'rejoin.dead-letter.topic' = 'cdc_dead_letters'
);

CREATE TABLE payments (
  payment_id BIGINT,
  purchase_id BIGINT,
  amount DECIMAL(12, 2),
  paid_at TIMESTAMP_LTZ(3),
  PRIMARY KEY (payment_id) NOT ENFORCED,
  WATERMARK FOR paid_at AS paid_at - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'shop.public.payments',
  'scan.startup.mode' = 'earliest-offset',
  'properties.bootstrap.servers' = '${env:KAFKA_SERVERS}',
  'value.format' = 'debezium-avro-confluent',
  'value.debezium-avro-confluent.url' = '${env:REGISTRY_URL}',
  'rejoin.dead-letter.topic' = 'cdc_dead_letters'
);

CREATE TABLE purchases_by_address (
  purchase_id BIGINT,
  amount DECIMAL(12, 2),
  changed_at TIMESTAMP_LTZ(3),
  customer_id BIGINT,
  name STRING,
  address STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'purchases_by_address',
  'properties.bootstrap.servers' = '${env:KAFKA_SERVERS}',
  'key.format' = 'avro-confluent',
  'key.fields' = 'purchase_id',
  'key.avro-confluent.url' = '${env:REGISTRY_URL}',
  'value.format' = 'debezium-avro-confluent',
  'value.debezium-avro-confluent.url' = '${env:REGISTRY_URL}'
);

CREATE TABLE prompt_payments (
  payment_id BIGINT,
  purchase_id BIGINT,
  amount DECIMAL(12, 2),
  bought_at TIMESTAMP_LTZ(3),
  paid_at TIMESTAMP_LTZ(3),
  PRIMARY KEY (payment_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'prompt_payments',
  'properties.bootstrap.servers' = '${env:KAFKA_SERVERS}',
  'key.format' = 'avro-confluent',
  'key.avro-confluent.url' = '${env:REGISTRY_URL}',
  'value.format' = 'avro-confluent',
  'value.avro-confluent.url' = '${env:REGISTRY_URL}'
);

INSERT INTO purchases_by_address
SELECT p.purchase_id, p.amount, p.changed_at, p.customer_id, c.name, c.address
FROM purchases AS p
LEFT JOIN customers FOR SYSTEM_TIME AS OF p.changed_at AS c ON p.customer_id = c.customer_id;

INSERT INTO prompt_payments
SELECT m.payment_id, m.purchase_id, m.amount, b.bought_at, m.paid_at
FROM bought AS b
JOIN payments AS m
  ON b.purchase_id = m.purchase_id
  AND m.paid_at BETWEEN b.bought_at AND b.bought_at + INTERVAL '1' HOUR;
