-- Users with an active subscription, and invoices of nobody: IN, EXISTS and NOT EXISTS.
CREATE TABLE users (id BIGINT, email STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE subscriptions (user_id BIGINT, plan STRING, active BOOLEAN) WITH (
  'connector' = 'kafka', 'topic' = 'subscriptions', 'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE invoices (invoice_id BIGINT, user_id BIGINT, cents BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'invoices', 'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE subscribers (id BIGINT, email STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'subscribers', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE orphans (invoice_id BIGINT, cents BIGINT, PRIMARY KEY (invoice_id) NOT ENFORCED) WITH (
  'connector' = 'kafka', 'topic' = 'orphans', 'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'debezium-json');

INSERT INTO subscribers SELECT id, email FROM users
WHERE id IN (SELECT user_id FROM subscriptions WHERE active)
  AND EXISTS (SELECT 1 FROM invoices i WHERE i.user_id = users.id AND i.cents > 100);

INSERT INTO orphans SELECT invoice_id, cents FROM invoices AS i
WHERE NOT EXISTS (SELECT * FROM users AS u WHERE u.id = i.user_id);
