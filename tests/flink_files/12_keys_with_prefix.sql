-- The key of the record and its value both have an `id`; the key's columns get a prefix.
CREATE TABLE bookings (
  k_id INT, k_hotel STRING,
  id BIGINT, guest STRING, nights TINYINT, price DECIMAL(9, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'bookings', 'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset',
  'key.format' = 'json', 'key.json.ignore-parse-errors' = 'true',
  'key.fields' = 'k_id;k_hotel', 'key.fields-prefix' = 'k_',
  'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'
);
CREATE TABLE long_stays (
  k_hotel STRING, guest STRING, total DECIMAL(12, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'long_stays', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'key.fields' = 'k_hotel', 'key.fields-prefix' = 'k_',
  'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'
);
INSERT INTO long_stays
SELECT k_hotel, CONCAT_WS(' ', 'guest', guest, CAST(id AS VARCHAR)), CAST(nights * price AS DECIMAL(12, 2))
FROM bookings WHERE nights >= 2 AND k_id <> 0;
