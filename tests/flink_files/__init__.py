"""Job files as Flink users write them, unchanged between Flink and rejoin; INDEX.md lists them."""
