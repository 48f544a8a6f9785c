CREATE TABLE A (
  a1 INT,
  a2 BIGINT,
  a3 STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'A',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

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

CREATE TABLE sums (
  city STRING,
  n BIGINT,
  total BIGINT,
  PRIMARY KEY (city) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'sums',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO sums
SELECT city, COUNT(DISTINCT a3) FILTER (WHERE a2 > 0), SUM(a2)
FROM A JOIN users ON a1 = user_id GROUP BY city HAVING COUNT(*) > 1;
