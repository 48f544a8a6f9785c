SET 'table.exec.sink.upsert-materialize' = 'none';

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

CREATE TABLE by_city (
  city STRING,
  name STRING,
  PRIMARY KEY (city) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'by_city',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO by_city SELECT city, name FROM users;
