"""Measures rejoin, and Flink SQL with the same job, data and cores."""
