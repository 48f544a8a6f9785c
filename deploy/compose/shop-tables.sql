-- What Debezium captures: one table with complete old rows, one without.
CREATE TABLE customers (
  customer_id bigint PRIMARY KEY,
  name text NOT NULL,
  address text
);
CREATE TABLE purchases (
  purchase_id bigint PRIMARY KEY,
  customer_id bigint NOT NULL,
  amount numeric(12, 2) NOT NULL,
  bought_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE customers REPLICA IDENTITY FULL;
INSERT INTO customers VALUES (1, 'Ada', 'London'), (2, 'Grace', 'New York');
INSERT INTO purchases VALUES (10, 1, 12.50), (11, 2, 99.95);
