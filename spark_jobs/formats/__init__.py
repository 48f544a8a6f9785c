"""Avro schemas of rows, and the client of a schema registry."""
