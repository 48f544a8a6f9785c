"""Tests, by what they need: unit and plans (no JVM), kernel, streaming and e2e (Spark, broker)."""
