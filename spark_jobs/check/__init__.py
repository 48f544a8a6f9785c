"""The command `rejoin check`: would the job run? Looks at its plan, checkpoint and topics."""
