"""Flink SQL for comparison: its virtual environment, its jars, and a runner for SQL files."""
