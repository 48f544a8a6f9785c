-- with the number over rows that change, without it over insertions, and one row by a plain column
CREATE TABLE offers (
  id INT,
  category STRING,
  price DECIMAL(10, 2),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'offers',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-json'
);
CREATE TABLE visits (
  page STRING,
  category STRING,
  seconds INT
) WITH (
  'connector' = 'kafka',
  'topic' = 'visits',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);
CREATE VIEW longest AS
SELECT category, page FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY category ORDER BY seconds DESC, page) AS n FROM visits)
WHERE n <= 10;

SELECT o.category, o.place, o.id, l.page
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY category ORDER BY price NULLS LAST) AS place FROM offers
) AS o
JOIN longest AS l ON l.category = o.category
WHERE o.place BETWEEN 2 AND 3;
