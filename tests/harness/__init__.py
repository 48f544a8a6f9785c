"""Runs scenario files (docs/scenarios.md) in memory, in Spark and through a broker."""
