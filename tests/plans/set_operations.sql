-- UNION and EXCEPT below INTERSECT's stronger hold, over a FULL JOIN by a common column
CREATE TABLE A (
  k INT,
  a CHAR(3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'A',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE B (
  k INT,
  b STRING,
  PRIMARY KEY (k) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'B',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

SET 'table.exec.sink.type-length-enforcer' = 'TRIM_PAD';

CREATE TABLE found (
  k INT,
  t CHAR(2)
) WITH (
  'connector' = 'kafka',
  'topic' = 'found',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'changelog-json'
);

INSERT INTO found
WITH both (k, t) AS (SELECT k, a || b FROM A FULL JOIN B USING (k))
SELECT k, t FROM both
UNION
SELECT k, a FROM A
INTERSECT
SELECT k, b FROM B
EXCEPT
SELECT k, 'x' FROM B WHERE b = 'gone';
