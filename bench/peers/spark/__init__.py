"""Spark's own stream-stream join for comparison, as a PySpark program."""
