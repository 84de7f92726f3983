"""The work of `longhaul budget`: how a session stands with what it may spend, and more of it."""

from dataclasses import dataclass
from typing import Literal

from rich.text import Text

from longhaul.agent.values.budget import Raise
from longhaul.starter import render_pending
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_lookup import Name, below, flags_of, opened, out_of_budget
from longhaul.starter.cli.session_start import decider
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.session import Session
from longhaul.starter.client.tree import WaitingBelow
from longhaul.starter.visible import one_line


@dataclass(frozen=True, slots=True)
class BudgetWish:
    """What the flags say; all empty: show it."""

    more: Raise
    stop: bool = False
    summarise: bool = False
    child: str | None = None
    at: str = ""

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
        waiting = await out_of_budget(session, wish.at) if wish.at or wish.child is None else None
        if (raises or end) and waiting is not None:
            await _answer(session, waiting, wish, decider(approver))
        elif raises or end:
            await session.change_budget(wish.more, end=end, child=wish.child, by=decider(approver))
        standing = (await session.status()).budget
        tree = await session.tree.pending()
    if standing is None and waiting is None:
        raise Misuse(f"session {session.id!r} has no budget; see [budget] in docs/agents/budgets.md")
    for line in standing.lines() if standing is not None else ():
        screen.show(Text(one_line(line)))
    if standing is not None and standing.asks:
        screen.show(Text(one_line(f"waits for more: {standing.asks}"), "yellow"))
    calls = [each.call for each in tree]
    lacking = [each for each in tree if each.above and each.call.waits_for == "budget"]
    for each in lacking:
        screen.show(Text(one_line(f"{each.call.path} waits for more: {each.call.reason}"), "yellow"))
        flags = [*below(each.session.id, each.call, calls), *flags_of(session)]
        screen.show(render_pending.how_to_answer(session.id, each.call, flags))
    told = standing.model_dump(mode="json") if standing is not None else None
    screen.document({"session": session.id, "budget": told, "below": [each.session.id for each in lacking]})
    return 0


async def _answer(root: Session, waiting: WaitingBelow, wish: BudgetWish, by: str) -> None:
    """More is raised from the root down to it; the end of a reply is its own."""
    if wish.child is not None:
        raise Misuse("--child and --at: --at finds the way from the root by itself; leave --child out")
    if wish.end:
        await waiting.session.change_budget(wish.more, end=wish.end, by=by)
        return
    await root.tree.raise_budget(waiting, wish.more, by=by)
