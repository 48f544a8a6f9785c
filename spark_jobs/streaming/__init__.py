"""Connector edges, query life cycle, progress to status."""
