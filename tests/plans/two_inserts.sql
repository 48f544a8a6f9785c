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

CREATE TABLE left_names (
  a3 STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'names',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE pairs (
  a1 INT,
  b3 STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'pairs',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO left_names SELECT a3 FROM A WHERE a2 > 0;
INSERT INTO pairs SELECT a1, b3 FROM A LEFT JOIN B ON a1 = b1;
END;
