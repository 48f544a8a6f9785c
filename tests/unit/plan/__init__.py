"""Tests of the planner; the interpreter of logical plans is shared."""
