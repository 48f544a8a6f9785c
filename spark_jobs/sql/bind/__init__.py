"""Statements to logical plans: every name found, every expression typed."""
