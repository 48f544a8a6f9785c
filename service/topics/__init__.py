"""What the sidecar asks of the broker: lag and the latest result rows."""
