"""The sidecar: serves health, metrics and the live page of a job from its driver's status."""
