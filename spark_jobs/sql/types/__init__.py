"""Types, and typed expressions over columns: what needs neither a table nor a scope."""
