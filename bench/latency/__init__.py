"""How long a record takes to its result, Kafka to Kafka, at a fixed rate."""
