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
  'rejoin.debezium.unavailable' = 'reject'
);

SELECT id, note FROM a WHERE note <> '';
