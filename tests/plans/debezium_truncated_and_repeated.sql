SET 'table.exec.source.cdc-events-duplicate' = 'true';

CREATE TABLE a (
  id BIGINT,
  note STRING,
  n INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'a',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json',
  'rejoin.debezium.truncate' = 'retract'
);

CREATE TABLE b (
  id BIGINT,
  note STRING,
  n INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'b',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);

SELECT a.id, b.n FROM a JOIN b ON a.id = b.id;
