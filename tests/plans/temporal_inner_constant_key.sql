-- part of the primary key is compared with a constant
CREATE TABLE payments (
  payment_id STRING,
  currency STRING,
  country STRING,
  amount BIGINT,
  paid_at TIMESTAMP(3),
  PRIMARY KEY (payment_id) NOT ENFORCED,
  WATERMARK FOR paid_at AS paid_at - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'payments',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE rates (
  currency STRING,
  country STRING,
  rate BIGINT,
  rate_time TIMESTAMP(3),
  PRIMARY KEY (currency, country) NOT ENFORCED,
  WATERMARK FOR rate_time AS rate_time - INTERVAL '10' SECOND
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'rates',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

CREATE TABLE converted (
  payment_id STRING,
  amount BIGINT,
  PRIMARY KEY (payment_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'converted',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO converted
SELECT p.payment_id, p.amount * r.rate
FROM payments AS p JOIN rates FOR SYSTEM_TIME AS OF p.paid_at AS r
ON p.currency = r.currency AND r.country = 'NO';
