"""The SQL front end: parser, binder, types, options, and what expressions mean in Spark."""
