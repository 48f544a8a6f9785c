"""Flink SQL for comparison: its own virtual environment, its jars, and the runner of a SQL file."""
