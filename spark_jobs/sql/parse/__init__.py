"""Text to statements and sqlglot trees, each with its place in the text."""
