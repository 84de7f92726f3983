"""Picks the few command lines that run unasked although no sandbox can hold them to their proof."""

import re

from longhaul.agent.permission.command_patterns import command_text
from longhaul.agent.permission.facts import CallFacts

_PLAIN = re.compile(
    r"(?:pwd|date|whoami|id|hostname|uname|nproc|true|false)|(?:echo|ls)(?: [A-Za-z0-9_][A-Za-z0-9_.,/:@%+-]*)*",
    re.ASCII,
)
"""Read off the raw text, so that no mistake in reading a shell counts: no options, quotes, patterns or operators."""


def is_unheld(facts: CallFacts) -> bool:
    """Whether its proof is all that there is."""
    return facts.boundary == "none"


def is_plain(raw_input: str) -> bool:
    """Whether the call's JSON text is of a command that can do nothing else, however a shell reads it."""
    return _PLAIN.fullmatch(command_text(raw_input).strip(" ")) is not None
