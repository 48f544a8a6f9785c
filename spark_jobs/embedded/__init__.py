"""Broker and registry for laptops, the demo and tests."""
