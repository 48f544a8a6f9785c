"""Flink as a second judge: the same tables and query in Flink SQL, on demand."""
