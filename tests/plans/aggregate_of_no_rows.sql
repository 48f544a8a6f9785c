SET 'table.exec.state.ttl' = '1 h';

CREATE TABLE A (
  a1 INT,
  a2 BIGINT,
  at TIMESTAMP(3),
  WATERMARK FOR at AS at
) WITH (
  'connector' = 'kafka',
  'topic' = 'A',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE shown (
  a1 INT,
  n BIGINT,
  s BIGINT,
  PRIMARY KEY (n) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'shown',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

-- no watermark of the one row holds back the conflicts
INSERT INTO shown
SELECT x.a1, n.n, n.s
FROM A AS x CROSS JOIN (SELECT COUNT(*) AS n, SUM(a2) AS s FROM A WHERE 1 = 2) AS n
ON CONFLICT DO NOTHING;
