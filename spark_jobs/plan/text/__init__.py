"""Plans as people read them: explain, Flink's trees, the graph of the page."""
