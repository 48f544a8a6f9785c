"""Meaning to strategy: logical plan, rules, physical plan, explain. Never imports pyspark."""
