-- both sides are upserts: they are normalised, and the result is corrected
CREATE TABLE orders (order_id INT, item STRING, at TIMESTAMP(3),
  PRIMARY KEY (order_id) NOT ENFORCED, WATERMARK FOR at AS at)
WITH ('connector' = 'upsert-kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE payments (pay_id INT, order_id INT, amount INT, at TIMESTAMP(3),
  PRIMARY KEY (pay_id) NOT ENFORCED, WATERMARK FOR at AS at)
WITH ('connector' = 'upsert-kafka', 'topic' = 'payments', 'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE paid (order_id INT, pay_id INT, item STRING, amount INT, PRIMARY KEY (order_id, pay_id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'paid', 'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json');
INSERT INTO paid
SELECT o.order_id, p.pay_id, o.item, p.amount FROM orders AS o LEFT JOIN payments AS p
  ON o.order_id = p.order_id AND p.at BETWEEN o.at - INTERVAL '1' HOUR AND o.at + INTERVAL '1' HOUR;
