"""What touches Spark's streaming API: sessions, sources, failures, checkpoints."""
