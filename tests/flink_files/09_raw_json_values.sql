-- Messages of a webhook, as one text each; what is no JSON is left out.
CREATE TABLE hooks (payload STRING) WITH (
  'connector' = 'kafka', 'topic' = 'hooks', 'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'raw'
);
CREATE TABLE issues_opened (
  id BIGINT, title STRING, author STRING, is_urgent BOOLEAN, labels STRING, opened TIMESTAMP(3), score DECIMAL(6, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'issues_opened', 'properties.bootstrap.servers' = 'kafka:9092', 'format' = 'json'
);
INSERT INTO issues_opened
SELECT
  TRY_CAST(JSON_VALUE(payload, '$.issue.id') AS BIGINT),
  JSON_VALUE(payload, '$.issue.title' DEFAULT '(none)' ON EMPTY),
  JSON_VALUE(payload, '$.issue.user.login'),
  JSON_EXISTS(payload, '$.issue.urgent'),
  JSON_QUERY(payload, '$.issue.labels'),
  TO_TIMESTAMP(REPLACE(SUBSTRING(JSON_VALUE(payload, '$.issue.at') FROM 1 FOR 19), 'T', ' ')),
  TRY_CAST(JSON_VALUE(payload, '$.issue.score') AS DECIMAL(6, 2))
FROM hooks
WHERE payload IS JSON OBJECT AND JSON_VALUE(payload, '$.action') IN ('opened', 'reopened');
