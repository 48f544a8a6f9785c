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

SELECT x.a1, y.a3 FROM A AS x JOIN A AS y ON x.a2 = y.a2 AND x.a1 < y.a1;
