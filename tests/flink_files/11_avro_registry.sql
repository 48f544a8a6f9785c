-- Avro of the Confluent registry in and out; the key of a result is raw text.
CREATE TABLE trips (
  trip_id STRING NOT NULL, driver STRING, km DOUBLE NOT NULL, seats INT
) WITH (
  'connector' = 'kafka', 'topic' = 'trips', 'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset', 'properties.group.id' = 'trips',
  'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'http://schema-registry:8081'
);
CREATE TABLE driver_totals (
  driver STRING, trips BIGINT, km DOUBLE, PRIMARY KEY (driver) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'driver_totals', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'raw',
  'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'http://schema-registry:8081',
  'value.avro-confluent.subject' = '11_avro_registry-driver_totals-value'
);
INSERT INTO driver_totals
SELECT driver, COUNT(*), SUM(km) FROM trips WHERE seats IS NULL OR seats > 0 GROUP BY driver;
