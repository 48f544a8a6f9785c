"""Changes to the checkpoint of a stopped job: `rejoin rescale`, `rejoin checkpoint`."""
