-- One pass over the click stream, two results.
SET 'parallelism.default' = '2';
SET 'table.exec.mini-batch.enabled' = 'false';
SET 'execution.checkpointing.interval' = '10 s';
SET 'execution.checkpointing.mode' = 'EXACTLY_ONCE';
SET 'state.backend.type' = 'rocksdb';
SET 'execution.runtime-mode' = 'streaming';
SET 'sql-client.execution.result-mode' = 'tableau';

CREATE TABLE clicks (
  user_id STRING, page STRING, country STRING, dwell_ms INT
) WITH (
  'connector' = 'kafka', 'topic' = 'clicks',
  'properties.bootstrap.servers' = 'kafka:9092',
  'properties.auto.offset.reset' = 'earliest',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json', 'json.fail-on-missing-field' = 'false', 'json.ignore-parse-errors' = 'true'
);
CREATE TABLE page_stats (
  page STRING, `views` BIGINT, users BIGINT, avg_dwell INT, slow BIGINT,
  PRIMARY KEY (page) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'page_stats',
  'properties.bootstrap.servers' = 'kafka:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE busy_countries (
  country STRING, `views` BIGINT,
  PRIMARY KEY (country) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'busy_countries',
  'properties.bootstrap.servers' = 'kafka:9092', 'key.format' = 'json', 'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);

EXECUTE STATEMENT SET
BEGIN
  INSERT INTO page_stats
  SELECT page, COUNT(*), COUNT(DISTINCT user_id), AVG(dwell_ms), COUNT(*) FILTER (WHERE dwell_ms > 1000)
  FROM clicks WHERE page IS NOT NULL GROUP BY page;

  -- those with more than one view
  INSERT INTO busy_countries
  SELECT country, COUNT(1) AS `views` FROM clicks GROUP BY country HAVING COUNT(1) > 1 AND country <> '';
END;
