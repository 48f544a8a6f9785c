"""Expressions and types as Spark SQL text, with Flink's meaning."""
