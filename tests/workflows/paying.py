"""A tool that keeps accounts outside of every session: what it did stands in a ledger that nobody else writes."""

import hashlib
import os
from pathlib import Path

from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect


@tool(effect=Effect.ONCE, concurrency_safe=True)
def pay(to: str, ledger: str, note: str = "") -> str:
    """Pay somebody. One line a payment; a long note stands there by its digest."""
    line = f"{to} {hashlib.sha256(note.encode()).hexdigest()[:12]}\n"
    descriptor = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
    return f"paid {to}"


def paid(ledger: Path) -> list[str]:
    """Whom, in order."""
    return [line.split()[0] for line in ledger.read_text().splitlines()] if ledger.exists() else []
