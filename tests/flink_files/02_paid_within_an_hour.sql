/* Orders and the payments that came within the hour.
   Both topics are append-only; the join keeps an hour of each. */
CREATE TABLE orders (
  order_id     BIGINT,
  customer     STRING,
  amount       DOUBLE,
  order_time   TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECONDS
) WITH (
  'connector' = 'kafka', 'topic' = 'orders',
  'properties.bootstrap.servers' = 'kafka:9092', 'properties.group.id' = 'payments',
  'scan.startup.mode' = 'earliest-offset',
  'value.format' = 'json', 'value.json.ignore-parse-errors' = 'true'
);
create table payments (
  payment_id bigint,
  order_id bigint,
  pay_time_ms bigint,
  pay_time as to_timestamp_ltz(pay_time_ms, 3),
  pay_ts as cast(to_timestamp_ltz(pay_time_ms, 3) as timestamp(3)),
  watermark for pay_ts as pay_ts - interval '5' second
) with (
  'connector' = 'kafka', 'topic' = 'payments',
  'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE paid (
  order_id BIGINT, customer STRING, amount DOUBLE, payment_id BIGINT,
  waited_s BIGINT, paid_on STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'paid',
  'properties.bootstrap.servers' = 'kafka:9092', 'format' = 'json'
);

SET 'table.local-time-zone' = 'UTC';

INSERT INTO paid
SELECT o.order_id, o.customer, o.amount, p.payment_id,
       TIMESTAMPDIFF(SECOND, o.order_time, p.pay_ts) AS waited_s,
       DATE_FORMAT(p.pay_ts, 'yyyy-MM-dd HH:mm') AS paid_on
FROM orders o, payments p
WHERE o.order_id = p.order_id
  AND p.pay_ts BETWEEN o.order_time AND o.order_time + INTERVAL '1' HOUR
;
