-- every column may be NULL, so one NULL in B empties the result: no equality, one key group
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

SELECT a1, a3 FROM A WHERE a1 NOT IN (SELECT b1 FROM B);
