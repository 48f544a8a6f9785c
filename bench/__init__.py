"""What rejoin does per second, and what Flink SQL does with the same job, data and cores."""
