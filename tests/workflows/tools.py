"""The tools of these tests, found by LONGHAUL_TOOLS=tests.workflows.tools."""

from activities.tools.function import tool
from agent.tools import Effect


def marker(page: int) -> str:
    return f"<<page {page}>>"


def page_text(page: int, chars: int) -> str:
    """The page's marker, and filler of its own up to the number of characters."""
    filler = (chr(97 + (page * 31 + place * 7) % 26) for place in range(chars - len(marker(page))))
    return marker(page) + "".join(filler)


@tool(effect=Effect.READ, read_only=True, concurrency_safe=True)
async def fetch(page: int, chars: int = 40) -> str:
    """Return that page."""
    return page_text(page, chars)


@tool(effect=Effect.ONCE)
async def send(to: str, text: str = "") -> str:
    """Send a letter; permission asks for it."""
    return f"sent {text!r} to {to}"


@tool(is_external_tool=True, read_only=True)
def courier(parcel: str) -> str:
    """Have a parcel brought by somebody outside."""
    raise AssertionError(f"an external tool ran here: {parcel!r}")
