"""Bytes to rows: JSON, Avro and Debezium, the registry, broken records."""
