"""The base of all recorded entries."""

from typing import Annotated

from longhaul.agent.plain.values import OpenValue, sparse

WRITTEN = "written by a person"
Written = Annotated[str, WRITTEN]
"""What a person wrote beside messages. A secret may stand in it: it is shown as a worker gives it back, with marks
(`agent.fold.ledger.words`). What becomes a message is shown with marks as messages are."""


class Entry(OpenValue):
    """`seq` counts from 1 and `at` is milliseconds since 1970; both are given by whoever records."""

    seq: int = sparse(0)
    at: int = sparse(0)
