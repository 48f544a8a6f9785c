"""The command `rejoin dlq`: what stands in dead-letter topics, and what is done about it."""
