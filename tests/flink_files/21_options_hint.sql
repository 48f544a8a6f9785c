-- The same topic, once more from its beginning: options of the table are replaced by a hint.
CREATE TABLE logins (user_id BIGINT, device STRING) WITH (
  'connector' = 'kafka', 'topic' = 'logins', 'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE devices (device STRING, logins BIGINT, PRIMARY KEY (device) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'devices', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
INSERT INTO devices
SELECT device, COUNT(*) FROM logins /*+ OPTIONS('scan.startup.mode'='earliest-offset') */ GROUP BY device;
