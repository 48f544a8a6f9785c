-- Orders of customers for products. Without compression 2 kB are surely kept out of the row.
CREATE TABLE customers (
  customer_id bigint PRIMARY KEY,
  name        text NOT NULL,
  tier        integer DEFAULT 3,
  balance     numeric(12, 2) NOT NULL,
  profile     text
);
ALTER TABLE customers REPLICA IDENTITY FULL;
ALTER TABLE customers ALTER profile SET STORAGE EXTERNAL;

CREATE TABLE products (
  product_id text PRIMARY KEY,
  title      text NOT NULL,
  price      numeric(10, 4),
  updated_at timestamptz
);

CREATE TABLE orders (
  order_id    bigint PRIMARY KEY,
  customer_id bigint REFERENCES customers ON UPDATE CASCADE ON DELETE SET NULL,
  product_id  text REFERENCES products ON UPDATE CASCADE ON DELETE SET NULL,
  quantity    integer DEFAULT 1,
  amount      numeric(12, 2),
  placed_at   timestamptz NOT NULL,
  note        text
);
ALTER TABLE orders ALTER note SET STORAGE EXTERNAL;
