"""Functions of SQL that Python computes: what users declare, and how a value is computed."""
