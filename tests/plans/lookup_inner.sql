CREATE TABLE probes (
  currency STRING,
  amount BIGINT,
  now_ AS PROCTIME()
) WITH (
  'connector' = 'kafka',
  'topic' = 'probes',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE rates (
  currency STRING,
  country STRING,
  rate BIGINT,
  rate_time TIMESTAMP(3),
  PRIMARY KEY (currency) NOT ENFORCED,
  WATERMARK FOR rate_time AS rate_time - INTERVAL '10' SECOND
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'rates',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json',
  'value.format' = 'json'
);

SELECT p.amount * r.rate FROM probes AS p
JOIN rates FOR SYSTEM_TIME AS OF p.now_ AS r ON p.currency = r.currency;
