"""What all recorded entries have in common."""

from agent.values import Guest, sparse


class Entry(Guest):
    """`seq` counts from 1 and `at` is milliseconds since 1970; both are given by whoever records."""

    seq: int = sparse(0)
    at: int = sparse(0)
