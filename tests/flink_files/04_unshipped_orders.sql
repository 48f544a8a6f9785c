-- Which orders were shipped within four hours, which were not, and parcels nobody ordered.
CREATE TABLE `orders` (
  `id` STRING, `order_time` TIMESTAMP(3), `total` DOUBLE,
  WATERMARK FOR `order_time` AS `order_time` - INTERVAL '30' SECOND
) WITH (
  'connector'='kafka','topic'='orders','properties.bootstrap.servers'='kafka:9092',
  'properties.group.id'='unshipped','scan.startup.mode'='earliest-offset','format'='json',
  'json.timestamp-format.standard'='ISO-8601'
);
CREATE TABLE `shipments` (
  `shipment_id` INT, `order id` STRING, `ship_time` TIMESTAMP(3),
  WATERMARK FOR `ship_time` AS `ship_time` - INTERVAL '1' MINUTE
) WITH (
  'connector'='kafka','topic'='shipments','properties.bootstrap.servers'='kafka:9092',
  'scan.startup.mode'='earliest-offset','format'='json','json.timestamp-format.standard'='ISO-8601'
);
CREATE TABLE shipping_state (
  `id` STRING, `shipment` INT, `state` STRING, `hours` BIGINT
) WITH (
  'connector'='kafka','topic'='shipping_state','properties.bootstrap.servers'='kafka:9092',
  'format'='json'
);
INSERT INTO `shipping_state`
SELECT COALESCE(o.`id`, s.`order id`), s.shipment_id,
  CASE WHEN o.id IS NULL THEN 'unordered'
       WHEN s.shipment_id IS NULL THEN 'unshipped'
       ELSE 'shipped' END,
  TIMESTAMPDIFF(HOUR, o.order_time, s.ship_time)
FROM `orders` AS o
FULL OUTER JOIN `shipments` AS s
  ON o.`id` = s.`order id`
 AND s.`ship_time` BETWEEN o.`order_time` AND o.`order_time` + INTERVAL '4' HOUR;
