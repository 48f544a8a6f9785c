"""Runs the conformance cases: rows in, rows out, as Flink's own tests have them."""
