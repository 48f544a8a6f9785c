-- computed and metadata columns, a view, a subquery: all projections melt into one
CREATE TABLE clicks (
  id BIGINT,
  payload ROW<page STRING, n INT>,
  twice AS payload.n * 2,
  at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  unused STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'clicks',
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

CREATE VIEW pages AS SELECT id, payload.page AS page, twice, at FROM clicks WHERE twice > 2;

SELECT x.page, x.t4, y.b3, x.at
FROM (SELECT id, page, twice * 2 AS t4, at FROM pages) AS x
JOIN (SELECT b2 AS id, b3 FROM B) AS y ON x.id = y.id
WHERE x.t4 > 8;
