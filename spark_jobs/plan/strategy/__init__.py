"""Logical nodes to physical ones: which operators run for a query, and what they keep."""
