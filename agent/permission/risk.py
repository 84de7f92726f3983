"""The analyzer `rules` says how risky a call is by what is known of it. Pure."""

import re
from typing import NamedTuple

from longhaul.agent.permission.facts import CallFacts
from longhaul.agent.permission.taint import goes_out
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Risk

MAX_LOOKED_AT_CHARS = 100_000
"""Of the arguments: what is hidden behind them counts as high."""
_FETCHERS = frozenset({"curl", "wget", "aria2c"})
_RUNNERS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "python", "python3", "perl", "ruby", "node", "php"})
_KEYS = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,255}\b"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,250}|\bsk-[A-Za-z0-9_-]{20,250}|\bglpat-[A-Za-z0-9_-]{20,250}"
)


class Judged(NamedTuple):
    risk: Risk
    reason: str
    """A sentence without its full stop."""


def risk_by_rules(tool: ToolDescriptor, arguments: str, facts: CallFacts, tainted: str) -> Judged:
    """`tainted`: how words came in that nobody vouches for; empty when none did."""
    out = goes_out(tool, facts)
    if high := _high(arguments, facts, out, tainted):
        return Judged(Risk.HIGH, high)
    if facts.not_understood:
        return Judged(Risk.MEDIUM, f"it contains {facts.not_understood}, which can't be judged without running it")
    elsewhere = next((path for path in facts.paths if path.access == "write" and not path.inside), None)
    if elsewhere is not None:
        return Judged(Risk.MEDIUM, f"it writes {elsewhere.path!r}, which is not of the workspace")
    if out:
        return Judged(Risk.MEDIUM, f"{out}, and so may carry something away")
    return Judged(Risk.LOW, "nothing speaks against it")


def _high(arguments: str, facts: CallFacts, out: str, tainted: str) -> str:
    if tainted and out:
        return f"{tainted}, and now a call goes out: {out}"
    if facts.safety:
        return facts.safety
    if risky := next((path for path in facts.paths if path.danger), None):
        return f"it would {risky.access} {risky.path!r}: {risky.danger}"
    programs = {command.words[0].rsplit("/", 1)[-1] for command in facts.commands if command.words}
    if programs & _FETCHERS and programs & _RUNNERS:
        return "it fetches something and runs it"
    if len(arguments) > MAX_LOOKED_AT_CHARS and out:
        return f"it goes out ({out}) with {len(arguments)} characters of arguments"
    if out and _KEYS.search(arguments):
        return f"what looks like a key would be carried away: {out}"
    return ""
