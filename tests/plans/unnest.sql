-- an array of rows with their places into a sink keyed by both, a left join, a map below an aggregate
CREATE TABLE carts (
  id INT,
  customer STRING,
  items ARRAY<ROW<sku STRING, quantity INT>>,
  labels MAP<STRING, STRING>,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'carts',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);
CREATE TABLE notes (
  customer STRING,
  words STRING,
  at_ TIMESTAMP(3),
  WATERMARK FOR at_ AS at_
) WITH (
  'connector' = 'kafka',
  'topic' = 'notes',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);
CREATE VIEW labelled AS
SELECT customer, label, COUNT(*) AS n FROM carts LEFT JOIN UNNEST(labels) AS l (label, v) ON v <> 'no'
GROUP BY customer, label;

SELECT c.id, c.sku, c.place, l.n, w.word
FROM (SELECT id, customer, sku, place FROM carts
  CROSS JOIN UNNEST(items) WITH ORDINALITY AS i (sku, quantity, place) WHERE quantity > 0) AS c
JOIN labelled AS l ON l.customer = c.customer AND l.label = c.sku
LEFT JOIN (SELECT customer, word FROM notes, UNNEST(SPLIT(words, ' ')) AS word) AS w
  ON w.customer = c.customer;
