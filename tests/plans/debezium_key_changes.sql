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
  'rejoin.debezium.key-changes' = 'heal'
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

SELECT a.id, a.note FROM a JOIN b ON a.id = b.id WHERE a.id > 10 AND b.n > 0 AND a.note <> '';
