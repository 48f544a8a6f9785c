"""The Python API: jobs as SQL text or as PySpark Column expressions, inside a Spark session."""
