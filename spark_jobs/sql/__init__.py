"""Text to meaning: parser, catalog, binder, types. Never imports pyspark."""
