-- Clicks per minute: a window table function.
CREATE TABLE clicks (page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
  'connector' = 'kafka', 'topic' = 'clicks', 'properties.bootstrap.servers' = 'kafka:9092', 'format' = 'json');
CREATE TABLE per_minute (page STRING, window_start TIMESTAMP(3), n BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'per_minute', 'properties.bootstrap.servers' = 'kafka:9092', 'format' = 'json');
INSERT INTO per_minute
SELECT page, window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY page, window_start, window_end;
