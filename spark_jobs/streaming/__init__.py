"""What touches Spark's streaming API: sessions, sources, progress, failures, checkpoints."""
