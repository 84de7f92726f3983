"""The fold changes the ledger by each entry."""
