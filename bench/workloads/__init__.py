"""What is measured: the SQL of each workload, a generator of its input, and the right answer."""
