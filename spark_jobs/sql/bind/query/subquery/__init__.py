"""Subqueries: in conditions, as values, in LATERAL."""
