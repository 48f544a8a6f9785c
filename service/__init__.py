"""The sidecar: tells people and machines how a job is doing, from the status its driver writes."""
