"""The kernel's machines in memory."""
