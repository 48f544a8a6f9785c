-- A catalog of its own, and an archive in files.
CREATE CATALOG archive WITH ('type' = 'generic_in_memory');
USE CATALOG archive;
CREATE TABLE events (id BIGINT, body STRING) WITH (
  'connector' = 'kafka', 'topic' = 'events', 'properties.bootstrap.servers' = 'kafka:9092', 'format' = 'json');
CREATE TABLE files (id BIGINT, body STRING) WITH (
  'connector' = 'filesystem', 'path' = 's3://archive/events', 'format' = 'parquet');
INSERT INTO files SELECT id, body FROM events;
