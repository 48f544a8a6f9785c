-- What job.sql computes, for PostgreSQL, in the order of compare.RESULTS. Filled in there: the columns
-- that have a default, as the connector's converter writes their NULLs.
WITH customers AS (
  SELECT customer_id, name, ${tier} AS tier, balance, profile FROM public.customers
), orders AS (
  SELECT order_id, customer_id, product_id, ${quantity} AS quantity, amount, placed_at, channel,
    note
  FROM public.orders WHERE order_id <> ALL(%(hidden)s::bigint[])
)
SELECT o.order_id, o.quantity, o.amount, o.placed_at, o.channel, o.note,
  o.customer_id, c.name, c.tier, c.balance, c.profile,
  o.product_id, p.title, p.price, p.updated_at
FROM orders AS o
LEFT JOIN customers AS c ON o.customer_id = c.customer_id
LEFT JOIN products AS p ON o.product_id = p.product_id;

WITH orders AS (
  SELECT order_id, customer_id, ${quantity} AS quantity, amount FROM public.orders
)
SELECT c.customer_id, COUNT(o.order_id) AS orders, SUM(o.quantity) AS items, SUM(o.amount) AS total
FROM customers AS c
JOIN orders AS o ON o.customer_id = c.customer_id
GROUP BY c.customer_id;

WITH orders AS (
  SELECT *, date_trunc('milliseconds', placed_at) AS placed FROM public.orders
), products AS (
  SELECT *, date_trunc('milliseconds', updated_at) AS updated FROM public.products
)
SELECT o.order_id, o.product_id, o.amount, o.placed_at, p.price, p.updated_at
FROM orders AS o
JOIN products AS p ON p.product_id = o.product_id
  AND p.updated BETWEEN o.placed - INTERVAL '6' HOUR AND o.placed + INTERVAL '6' HOUR;
