"""Aggregate functions compared with what a real Flink computes after every change."""
