-- a comma join is an inner join; what concerns one side goes below it, and so does what follows
-- for the other side
CREATE TABLE A (
  a1 INT,
  a2 BIGINT,
  a3 STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'a',
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
  'topic' = 'b',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE joined (
  a3 STRING,
  b3 STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'joined',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

INSERT INTO joined
SELECT a3, b3 FROM A, B WHERE a1 = b1 AND a1 < 4 AND a2 + b2 > 10 AND b3 LIKE 'x%';
