"""Rewrites of the logical plan; a rule is a function of the whole tree."""
