"""Settings, credentials and TLS of connections to Kafka brokers and schema registries."""
