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
  b1 INT
) WITH (
  'connector' = 'kafka',
  'topic' = 'joined',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

INSERT INTO joined SELECT a1, b1 FROM A RIGHT JOIN B ON a1 = b1;
INSERT INTO joined SELECT a1, b1 FROM A FULL OUTER JOIN B ON a1 = b1;
