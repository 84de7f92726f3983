"""The work of `longhaul budget`: how a session stands with what it may spend, and more of it."""

from dataclasses import dataclass
from typing import Literal

from rich.text import Text

from longhaul.agent.values.budget import Raise
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.finding import Name, opened
from longhaul.starter.cli.opening import decider
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.visible import one_line


@dataclass(frozen=True, slots=True)
class BudgetWish:
    """What the flags say; all empty: show it."""

    more: Raise
    stop: bool = False
    summarise: bool = False
    child: str = ""

    @property
    def end(self) -> Literal["", "stop", "summarise"]:
        """Raises Misuse for both."""
        if self.stop and self.summarise:
            raise Misuse("--stop and --summarise: a reply ends in one way; give one of them")
        return "stop" if self.stop else "summarise" if self.summarise else ""


async def budget(screen: Screen, name: Name, wish: BudgetWish, approver: str | None) -> int:
    """Change it as was wished, and show it."""
    raises, end = any(wish.more.given()), wish.end
    async with opened(name) as session:
        if raises or end:
            await session.change_budget(wish.more, end=end, child=wish.child, by=decider(approver))
        standing = (await session.status()).budget
    if standing is None:
        raise Misuse(f"session {session.id!r} has no budget; see [budget] in docs/agents/budgets.md")
    for line in standing.lines():
        screen.show(Text(one_line(line)))
    if standing.asks:
        screen.show(Text(one_line(f"waits for more: {standing.asks}"), "yellow"))
    screen.document({"session": session.id, "budget": standing.model_dump(mode="json")})
    return 0
