"""The command `rejoin dlq`: shows, replays and drops the records of dead-letter topics."""
