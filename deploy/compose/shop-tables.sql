-- What Debezium captures. customers has complete old rows in its events, purchases and payments have keys
-- only.
CREATE TABLE customers (
  customer_id bigint PRIMARY KEY,
  name text NOT NULL,
  address text
);
CREATE TABLE purchases (
  purchase_id bigint PRIMARY KEY,
  customer_id bigint NOT NULL,
  amount numeric(12, 2) NOT NULL,
  bought_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE payments (
  payment_id bigint PRIMARY KEY,
  purchase_id bigint NOT NULL,
  amount numeric(12, 2) NOT NULL,
  paid_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE customers REPLICA IDENTITY FULL;

-- Every version of a customer, for PostgreSQL's own answer as of a time; Debezium does not capture it.
CREATE TABLE customers_history (
  change bigint GENERATED ALWAYS AS IDENTITY,
  customer_id bigint NOT NULL,
  name text,
  address text,
  is_there boolean NOT NULL
);
CREATE FUNCTION keep_customer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO customers_history (customer_id, is_there) VALUES (OLD.customer_id, false);
  ELSE
    INSERT INTO customers_history (customer_id, name, address, is_there)
    VALUES (NEW.customer_id, NEW.name, NEW.address, true);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER keep_customer AFTER INSERT OR UPDATE OR DELETE ON customers
FOR EACH ROW EXECUTE FUNCTION keep_customer();

INSERT INTO customers VALUES (1, 'Ada', 'London'), (2, 'Grace', 'New York');
INSERT INTO purchases VALUES (10, 1, 12.50), (11, 2, 99.95);
INSERT INTO payments VALUES (100, 10, 12.50);

CREATE SEQUENCE shop_numbers START 1000;

-- Called once a second by clerk.sql. Purchases of the last hour stay, the others are deleted.
CREATE FUNCTION clerk() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  someone bigint := (SELECT customer_id FROM customers ORDER BY random() LIMIT 1);
BEGIN
  INSERT INTO purchases (purchase_id, customer_id, amount)
  VALUES (nextval('shop_numbers'), someone, (random() * 100)::numeric(12, 2));
  INSERT INTO payments (payment_id, purchase_id, amount)
  SELECT nextval('shop_numbers'), purchase_id, amount FROM purchases ORDER BY random() LIMIT 1;
  IF random() < 0.3 THEN
    UPDATE customers SET address = 'Street ' || (random() * 1000)::int
    WHERE customer_id = (SELECT customer_id FROM customers ORDER BY random() LIMIT 1);
  END IF;
  IF random() < 0.1 THEN
    INSERT INTO customers VALUES (nextval('shop_numbers'), 'Customer', 'Harbour');
  END IF;
  IF random() < 0.2 THEN
    UPDATE purchases SET amount = amount + 1 WHERE customer_id = someone;
  END IF;
  IF random() < 0.2 THEN
    UPDATE payments SET amount = amount + 1
    WHERE purchase_id = (SELECT purchase_id FROM purchases ORDER BY random() LIMIT 1)
      AND paid_at > now() - interval '50 minutes';
  END IF;
  DELETE FROM purchases WHERE bought_at < now() - interval '1 hour';
END $$;
