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

SELECT DISTINCT a1, a3 FROM A;
