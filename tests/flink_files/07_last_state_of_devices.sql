-- The last message of each device (deduplication as in Flink's documentation).
CREATE TABLE device_events (
  device_id STRING,
  `status` STRING,
  firmware STRING,
  event_ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(event_ts, 3),
  proc_time AS PROCTIME(),
  WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'device_events', 'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE device_state (
  device_id STRING PRIMARY KEY NOT ENFORCED, `status` STRING, firmware STRING, event_ts BIGINT
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'device_state', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json'
);
CREATE TEMPORARY VIEW latest AS
SELECT device_id, `status`, firmware, event_ts
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY device_id ORDER BY event_time DESC) AS row_num
  FROM device_events
)
WHERE row_num = 1;

INSERT INTO device_state (device_id, event_ts, `status`, firmware)
SELECT device_id, event_ts, LOWER(TRIM(`status`)), firmware FROM latest;
