"""The tool `pay` of a later release, which asks for more."""

from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect
from tests.workflows import paying


@tool(effect=Effect.ONCE)
def pay(to: str, ledger: str, note: str = "", currency: str = "EUR") -> str:
    """Pay somebody, in a currency."""
    return f"{paying.pay.name} {to} {ledger} {note} {currency}"
