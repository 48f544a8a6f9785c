-- By hand, as a person would: every kind of change, in several transactions.
UPDATE customers SET address = 'Oxford' WHERE customer_id = 1;
BEGIN;
INSERT INTO customers VALUES (:base + 1, 'Edsger', 'Rotterdam');
INSERT INTO purchases (purchase_id, customer_id, amount) VALUES (:base + 2, :base + 1, 10.00);
COMMIT;
INSERT INTO purchases (purchase_id, customer_id, amount)
VALUES (:base + 3, 1, 20.00), (:base + 4, 2, 30.00), (:base + 5, :base + 99, 40.00), (:base + 6, 2, 50.00);
-- two that are prompt, one that is not, one before its purchase, one for nothing
INSERT INTO payments (payment_id, purchase_id, amount) VALUES (:base + 7, :base + 2, 10.00);
INSERT INTO payments SELECT :base + 8, purchase_id, 20, bought_at + interval '59 minutes'
FROM purchases WHERE purchase_id = :base + 3;
INSERT INTO payments SELECT :base + 9, purchase_id, 30, bought_at + interval '61 minutes'
FROM purchases WHERE purchase_id = :base + 4;
INSERT INTO payments SELECT :base + 10, purchase_id, 30, bought_at - interval '1 second'
FROM purchases WHERE purchase_id = :base + 4;
INSERT INTO payments (payment_id, purchase_id, amount) VALUES (:base + 11, :base + 98, 1.00);
-- what is changed is joined with the customer of its new time
UPDATE customers SET name = 'E. W. Dijkstra' WHERE customer_id = :base + 1;
UPDATE purchases SET amount = 11.00 WHERE purchase_id = :base + 2;
UPDATE purchases SET customer_id = 1 WHERE purchase_id = :base + 4;
-- prompt payments that change, move to another purchase, move in time, and go, by themselves or with the purchase
INSERT INTO payments (payment_id, purchase_id, amount)
SELECT :base + n, :base + 6, n FROM generate_series(14, 18) AS n;
UPDATE payments SET amount = 15.50 WHERE payment_id = :base + 15;
UPDATE payments SET purchase_id = :base + 4 WHERE payment_id = :base + 16;
UPDATE payments SET paid_at = paid_at + interval '2 hours' WHERE payment_id = :base + 8;
UPDATE payments SET payment_id = :base + 19 WHERE payment_id = :base + 17;
DELETE FROM payments WHERE payment_id = :base + 7;
INSERT INTO payments (payment_id, purchase_id, amount) VALUES (:base + 20, :base + 5, 40.00);
DELETE FROM customers WHERE customer_id = :base + 1;
INSERT INTO purchases (purchase_id, customer_id, amount) VALUES (:base + 12, :base + 1, 60.00);
DELETE FROM purchases WHERE purchase_id = :base + 6;
UPDATE purchases SET purchase_id = :base + 13 WHERE purchase_id = :base + 5;
