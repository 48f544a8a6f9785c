"""Kafka Streams for comparison: its jars from Maven, and the join as a Java program."""
