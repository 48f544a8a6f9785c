-- rows of one sink key come from two joins: a materialiser brings them together
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

CREATE TABLE out_ (
  id INT,
  v STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'out_',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO out_
SELECT user_id, a3 FROM users JOIN A ON user_id = a1
UNION ALL
SELECT user_id, b3 FROM users JOIN B ON user_id = b1;
