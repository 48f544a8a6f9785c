"""The demo: a shop's events through a real broker and a real job, every joined row verified."""
