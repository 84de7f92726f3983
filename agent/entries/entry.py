"""The base of all recorded entries."""

from longhaul.agent.plain.values import OpenValue, sparse


class Entry(OpenValue):
    """`seq` counts from 1 and `at` is milliseconds since 1970; both are given by whoever records."""

    seq: int = sparse(0)
    at: int = sparse(0)
