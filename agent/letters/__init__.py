"""Letters ask something of a session from outside; the files have the same names as in `agent.entries`."""
