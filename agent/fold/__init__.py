"""The fold changes the ledger by each entry; the files have the same names as in `agent.entries`."""
