"""Plain code knows nothing of agents: text, times, digests, ids."""
