-- Positions with the instrument they are in; instruments live for a day, positions for ever.
CREATE TABLE positions (account STRING, isin STRING, `count` BIGINT, PRIMARY KEY (account, isin) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'positions', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE instruments (isin STRING, `name` STRING, price DOUBLE, PRIMARY KEY (isin) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'instruments', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE valued (account STRING, isin STRING, `name` STRING, `value` DOUBLE, PRIMARY KEY (account, isin) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'valued', 'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json', 'value.format' = 'json');
INSERT INTO valued
SELECT /*+ STATE_TTL('p' = '0s', 'i' = '1d') */ p.account, p.isin, i.`name`, p.`count` * i.price
FROM positions p LEFT OUTER JOIN instruments i ON p.isin = i.isin
WHERE p.`count` IS NOT NULL AND NOT p.`count` = 0;
