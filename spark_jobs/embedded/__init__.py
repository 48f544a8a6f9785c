"""A Kafka broker and a schema registry for laptops, the demo and tests."""
