"""PostgreSQL, Debezium, a registry and rejoin: what comes out is what the database says."""
