"""Joins, aggregates and normalisation in memory, step by step and against the oracle."""
