"""How the sidecar bears requests while a job changes."""
