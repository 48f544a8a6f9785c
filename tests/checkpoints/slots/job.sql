-- Rows that wait for many different times, of which the group's cell listed all, whatever their number.
SET 'rejoin.key-groups' = '2';
SET 'rejoin.parallelism' = '1';

CREATE TABLE clicks (
  page INT, clicked_at TIMESTAMP(3), WATERMARK FOR clicked_at AS clicked_at
) WITH (
  'connector' = 'kafka', 'topic' = 'clicks',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE purchases (
  page INT, bought_at TIMESTAMP(3), WATERMARK FOR bought_at AS bought_at
) WITH (
  'connector' = 'kafka', 'topic' = 'purchases',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE bought (page INT, clicked_at TIMESTAMP(3), bought_at TIMESTAMP(3)) WITH (
  'connector' = 'kafka', 'topic' = 'bought',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json'
);
INSERT INTO bought
SELECT c.page, c.clicked_at, p.bought_at FROM clicks AS c LEFT JOIN purchases AS p
ON c.page = p.page AND p.bought_at BETWEEN c.clicked_at AND c.clicked_at + INTERVAL '10' DAY;
