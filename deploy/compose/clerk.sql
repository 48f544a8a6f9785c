-- What happens in the shop, once a second, in one transaction; from when Debezium listens, so that each
-- change is an event of its own.
\o /dev/null
DO $$ BEGIN
  WHILE NOT EXISTS (SELECT FROM pg_replication_slots WHERE active) LOOP
    PERFORM pg_sleep(0.5);
  END LOOP;
END $$;
SELECT clerk() \watch 1
