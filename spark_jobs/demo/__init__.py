"""The demo: a shop's events through a real broker and a real job, with every row verified."""
