-- Distinct, BEGIN STATEMENT SET is not needed for one INSERT; functions of text and number.
create table if not exists visits (ip string, agent string, bytes_sent int, ok boolean) with (
  'connector'='kafka', 'topic'='visits', 'properties.bootstrap.servers'='kafka:9092',
  'scan.startup.mode'='earliest-offset', 'format'='json');
create table visitors (network string, browser string, primary key (network, browser) not enforced) with (
  'connector'='upsert-kafka', 'topic'='visitors', 'properties.bootstrap.servers'='kafka:9092',
  'key.format'='json', 'value.format'='json');
insert into visitors
select distinct
  regexp_extract(ip, '^(\d+\.\d+)\.', 1) as network,
  case when agent like '%Firefox%' then 'firefox'
       when agent like 'curl/%' then 'curl'
       else coalesce(nullif(split_index(agent, '/', 0), ''), 'unknown') end as browser
from visits
where ok is not false and mod(coalesce(bytes_sent, 0), 2) = 0 and char_length(ip) between 7 and 15;
