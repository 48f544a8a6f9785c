"""rejoin: the streaming joins of Flink SQL on Spark, Kafka to Kafka."""

__version__ = "0.2.0"
