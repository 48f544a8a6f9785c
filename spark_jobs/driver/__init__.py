"""The life of a job: launch, watch, report, stop; who owns its checkpoints; its sidecar."""
