"""Looks at a job, its checkpoint and its topics without running anything."""
