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

CREATE TABLE B (
  b1 INT,
  b2 BIGINT,
  b3 STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'B',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

SELECT name, b3 FROM users FULL OUTER JOIN B ON user_id = b1 AND b2 > 7 AND b3 <> name;
