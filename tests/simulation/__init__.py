"""Whole jobs under faults, in memory, on a virtual clock: any history again from its seed."""
