"""Meaning to strategy: rules, facts, strategy, nodes, checks, texts. Never imports pyspark."""
