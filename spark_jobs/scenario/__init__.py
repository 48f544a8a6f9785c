"""Tests of SQL: rows in, rows out, without Spark or a broker (docs/scenarios.md)."""
