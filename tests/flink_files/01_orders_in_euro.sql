-- Orders in the currency they were paid in, converted with the rate of that moment.
SET 'parallelism.default' = '1';
SET 'table.local-time-zone' = 'UTC';
SET 'pipeline.name' = 'orders-in-euro';

CREATE TABLE orders (
    order_id    STRING,
    price       DECIMAL(32,2),
    currency    STRING,
    order_time  TIMESTAMP(3),
    WATERMARK FOR order_time AS order_time - INTERVAL '15' SECOND
) WITH (
    'connector' = 'kafka',
    'topic' = 'orders',
    'properties.bootstrap.servers' = 'kafka:9092',
    'properties.group.id' = 'orders-in-euro',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);

CREATE TABLE currency_rates (
    currency STRING,
    conversion_rate DECIMAL(32, 2),
    update_time TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL,
    WATERMARK FOR update_time AS update_time,
    PRIMARY KEY(currency) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka',
    'topic' = 'currency_rates',
    'properties.bootstrap.servers' = 'kafka:9092',
    'key.format' = 'json',
    'value.format' = 'json'
);

CREATE TABLE orders_in_euro (
    order_id STRING,
    price DECIMAL(32,2),
    currency STRING,
    conversion_rate DECIMAL(32,2),
    in_euro DECIMAL(38, 4),
    order_time TIMESTAMP(3)
) WITH (
    'connector' = 'kafka',
    'topic' = 'orders_in_euro',
    'properties.bootstrap.servers' = 'kafka:9092',
    'format' = 'json'
);

INSERT INTO orders_in_euro
SELECT
     orders.order_id,
     orders.price,
     orders.currency,
     currency_rates.conversion_rate,
     orders.price * currency_rates.conversion_rate,
     orders.order_time
FROM orders
LEFT JOIN currency_rates FOR SYSTEM_TIME AS OF orders.order_time
ON orders.currency = currency_rates.currency;
