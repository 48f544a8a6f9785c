-- Orders as CSV from a till, products (Canal) and stock (Maxwell) from MySQL; what is left of each
-- product, as CSV by product and as a changelog of Canal.
CREATE TABLE orders (
  id INT,
  product INT,
  note STRING,
  price DECIMAL(10, 2),
  ordered_at TIMESTAMP(3),
  tags ARRAY<STRING>
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'csv',
  'csv.field-delimiter' = ';',
  'csv.array-element-delimiter' = ',',
  'csv.null-literal' = '\N',
  'csv.ignore-parse-errors' = 'true'
);

CREATE TABLE products (
  id INT,
  name STRING,
  weight DOUBLE,
  changed_in STRING METADATA FROM 'value.database' VIRTUAL,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'products',
  'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'canal-json',
  'canal-json.table.include' = 'products.*'
);

CREATE TABLE stock (
  product INT,
  n INT
) WITH (
  'connector' = 'kafka',
  'topic' = 'stock',
  'properties.bootstrap.servers' = 'kafka:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'maxwell-json'
);

CREATE TABLE left_over (
  product INT,
  name STRING,
  n_left BIGINT,
  sold DECIMAL(38, 2),
  PRIMARY KEY (product) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'left_over',
  'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'csv',
  'value.format' = 'csv',
  'value.csv.null-literal' = 'NULL'
);

CREATE TABLE notes (
  product INT,
  name STRING,
  note STRING,
  tag STRING,
  changed_in STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'notes',
  'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'canal-json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO left_over
SELECT p.id, MAX(p.name), MAX(s.n) - COUNT(o.id), SUM(o.price)
FROM products AS p
LEFT JOIN stock AS s ON s.product = p.id
LEFT JOIN orders AS o ON o.product = p.id
GROUP BY p.id;
INSERT INTO notes
SELECT p.id, p.name, o.note, o.tags[1], p.changed_in
FROM orders AS o JOIN products AS p ON o.product = p.id;
END;
