"""`rejoin table`: CREATE TABLE statements from a topic's records and its registered schemas."""
