"""Functions compared with what a real Flink computes."""
