"""What touches Spark's streaming API: sessions, sources, queries, checkpoints."""
