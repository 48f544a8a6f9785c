-- What deploy/compose/cdc.sql computes, for PostgreSQL: a time is that of the commit, as in Debezium's
-- events. What the test's closing transactions leave is not asked for.
WITH versions AS (
  SELECT customer_id, name, address, is_there, change,
    date_trunc('milliseconds', pg_xact_commit_timestamp(xmin)) AS since
  FROM customers_history
), made AS (
  SELECT *, date_trunc('milliseconds', pg_xact_commit_timestamp(xmin)) AS changed_at
  FROM purchases WHERE purchase_id < 900000
), addressed AS (
  SELECT p.purchase_id, p.amount, p.customer_id, c.name, c.address,
    -- rows of the snapshot have its time
    CASE WHEN p.purchase_id >= 1000
      THEN (extract(epoch FROM p.changed_at) * 1000)::bigint END AS changed_ms
  FROM made AS p LEFT JOIN LATERAL (
    SELECT * FROM versions AS v WHERE v.customer_id = p.customer_id AND v.since <= p.changed_at
    ORDER BY v.since DESC, v.change DESC LIMIT 1
  ) AS c ON c.is_there
), prompt AS (
  SELECT m.payment_id, m.purchase_id, m.amount,
    (extract(epoch FROM p.bought_at) * 1000)::bigint AS bought_ms,
    (extract(epoch FROM m.paid_at) * 1000)::bigint AS paid_ms
  FROM payments AS m JOIN purchases AS p ON m.purchase_id = p.purchase_id
    AND m.paid_at BETWEEN p.bought_at AND p.bought_at + interval '1 hour'
  WHERE m.payment_id < 900000
)
SELECT json_build_object(
  'purchases_by_address', (SELECT json_agg(addressed) FROM addressed),
  'prompt_payments', (SELECT json_agg(prompt) FROM prompt));
