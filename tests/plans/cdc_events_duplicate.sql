SET 'table.exec.source.cdc-events-duplicate' = 'true';

CREATE TABLE changes (
  c1 INT,
  c2 STRING,
  PRIMARY KEY (c1) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'changes',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

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

SELECT a1, c2 FROM A JOIN changes ON a1 = c1;
