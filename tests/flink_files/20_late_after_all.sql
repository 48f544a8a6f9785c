-- Ratings that follow a purchase, LEFT interval join inside a view, several INSERTs, odd formatting.
SET 'table.local-time-zone' = 'UTC'; SET 'table.exec.source.idle-timeout' = '5 s';
CREATE TABLE purchases (pid INT , buyer STRING , /* the shop's clock */ ts TIMESTAMP_LTZ(3) ,
  WATERMARK FOR ts AS ts - INTERVAL '10' SECOND ) WITH ( 'connector' = 'kafka' , 'topic' = 'purchases' ,
  'properties.bootstrap.servers' = 'kafka:9092' , 'scan.startup.mode' = 'earliest-offset' , 'format' = 'json' ,
  'json.timestamp-format.standard' = 'ISO-8601' ) ;
CREATE TABLE ratings (pid INT, stars SMALLINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH
('connector' = 'kafka', 'topic' = 'ratings', 'properties.bootstrap.servers' = 'kafka:9092',
 'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE rated (buyer STRING, pid INT, stars SMALLINT, bought STRING) WITH
('connector' = 'kafka', 'topic' = 'rated', 'properties.bootstrap.servers' = 'kafka:9092', 'format' = 'json');
CREATE TABLE mean_stars (buyer STRING, stars DOUBLE, unrated BIGINT, PRIMARY KEY (buyer) NOT ENFORCED) WITH
('connector' = 'upsert-kafka', 'topic' = 'mean_stars', 'properties.bootstrap.servers' = 'kafka:9092',
 'key.format' = 'json', 'value.format' = 'json', 'key.json.map-null-key.mode' = 'FAIL');
CREATE TEMPORARY VIEW purchases_with_ratings AS
  SELECT p.buyer, p.pid, r.stars, DATE_FORMAT(p.ts, 'HH:mm') AS bought
  FROM purchases AS p LEFT JOIN ratings AS r
    ON p.pid = r.pid AND r.ts >= p.ts AND r.ts < p.ts + INTERVAL '30' MINUTE;
-- each of them; a comment with a ; in it
INSERT INTO rated SELECT * FROM purchases_with_ratings;
INSERT INTO mean_stars
SELECT buyer, AVG(CAST(stars AS DOUBLE)), COUNT(*) - COUNT(stars) FROM purchases_with_ratings
WHERE buyer <> 'it''s a test; ignore' GROUP BY buyer;
