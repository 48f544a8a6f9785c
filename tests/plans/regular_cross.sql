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

SELECT a1, b1 FROM A CROSS JOIN B;
