"""The command `rejoin state`: reads a job's committed state from its checkpoint."""
