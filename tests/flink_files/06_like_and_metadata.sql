-- Two regions with the same layout, one table of both, and where each record came from.
CREATE TABLE sensors_base (
  device STRING,
  celsius DOUBLE,
  fahrenheit AS celsius * 9 / 5 + 32,
  written_at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  `partition` INT METADATA VIRTUAL,
  `offset` BIGINT METADATA VIRTUAL,
  WATERMARK FOR written_at AS written_at - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'sensors_north',
  'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);
CREATE TABLE sensors_north WITH ('topic' = 'sensors_north') LIKE sensors_base;
CREATE TABLE sensors_south (
  celsius_limit AS 40.5
) WITH ('topic' = 'sensors_south') LIKE sensors_base (INCLUDING ALL OVERWRITING OPTIONS);

CREATE TABLE readings (
  region STRING, device STRING, fahrenheit DOUBLE, day_of STRING, place STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'readings',
  'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'raw', 'key.fields' = 'device', 'value.format' = 'json', 'value.fields-include' = 'ALL'
);
SET 'table.local-time-zone' = 'Europe/Oslo';

INSERT INTO readings
SELECT 'north', device, fahrenheit, DATE_FORMAT(written_at, 'yyyy-MM-dd HH:mm:ss'),
       CAST(`partition` AS STRING) || '/' || CAST(`offset` AS STRING)
FROM sensors_north
UNION ALL
SELECT 'south', device, fahrenheit, DATE_FORMAT(written_at, 'yyyy-MM-dd HH:mm:ss'),
       CAST(`partition` AS STRING) || '/' || CAST(`offset` AS STRING)
FROM sensors_south
WHERE celsius > -273.15 AND celsius < celsius_limit;
