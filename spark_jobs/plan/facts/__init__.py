"""What is known of a logical node: keys, kinds of change, times, bounds, sources."""
