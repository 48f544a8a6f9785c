"""What a job keeps: its committed state, read out of the checkpoint while the job runs on."""
