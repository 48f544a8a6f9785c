-- A first try of Flink: random rows to the log.
CREATE TABLE random_orders (id BIGINT, price DECIMAL(8, 2)) WITH (
  'connector' = 'datagen', 'rows-per-second' = '5', 'fields.id.kind' = 'sequence',
  'fields.id.start' = '1', 'fields.id.end' = '100');
CREATE TABLE shown (id BIGINT, price DECIMAL(8, 2)) WITH ('connector' = 'print');
INSERT INTO shown SELECT id, price FROM random_orders;
