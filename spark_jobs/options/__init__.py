"""WITH options, SET keys, client properties: names, kinds, defaults. Knows no SQL, no Spark."""
