-- a value in the select list, one below OR, and one in CASE: left joins that add no row
CREATE TABLE A (
  a1 INT,
  a2 BIGINT,
  a3 VARCHAR(20)
) WITH (
  'connector' = 'kafka',
  'topic' = 'A',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE B (
  b1 INT NOT NULL
) WITH (
  'topic' = 'B'
) LIKE A (OVERWRITING OPTIONS);

SELECT
  a1,
  (SELECT COUNT(*) FROM B WHERE b1 = A.a1) AS same,
  CASE WHEN a2 IN (SELECT a2 FROM B WHERE a3 = A.a3) THEN (SELECT MAX(b1) FROM B) END AS largest
FROM A
WHERE a1 > 2 OR EXISTS (SELECT 1 FROM B WHERE b1 = A.a1);
