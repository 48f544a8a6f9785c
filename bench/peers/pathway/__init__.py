"""Pathway for comparison: its virtual environment, and the join as a Pathway program."""
