"""Text to meaning: parse and bind, to a catalog and logical plans. Never imports pyspark."""
