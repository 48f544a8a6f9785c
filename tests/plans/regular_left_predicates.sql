-- ON predicates of the left side only decide matching, those of the right side go below;
-- WHERE goes below on the left side, and stays above for the right side
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
  a1 INT,
  a3 STRING,
  b3 STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'joined',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

INSERT INTO joined
SELECT a1, a3, b3 FROM A LEFT JOIN B ON a1 = b1 AND a2 > 0 AND b2 > 0 AND a3 <> b3
WHERE a1 < 100 AND (b3 IS NULL OR b3 > 'm');
