"""The ledger is what the fold changes by each entry; the state in it is all that has to be known to go on."""
