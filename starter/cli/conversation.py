"""One reply from its request to its end: shown, decided on at the terminal, interrupted by Ctrl-C."""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Literal, cast

from rich.text import Text

from agent.event import AgentEvent
from agent.messages import FinishedReason, Msg
from starter import render, render_session
from starter.asking import NoSession
from starter.cli.approving import Allow, Deny, Leave, ask_about
from starter.cli.leaving import Exit
from starter.cli.progress import Progress
from starter.cli.screen import Screen
from starter.cli.standing import Standing
from starter.session import Session
from starter.visible import harmless
from starter.wire import Refused
from workflows.contract import PendingCall

INTERRUPT_SECONDS = 10.0
"""Granted to an interrupted reply to end in order; after that the command leaves it alone."""

_BEYOND_THE_LAST = 2**31
_FAILED = (FinishedReason.ERROR, FinishedReason.EXCEED_MAX_ITERS, FinishedReason.STUCK)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a reply has come when the command has no more to do."""

    status: Literal["finished", "waiting", "failed", "working", "paused"]
    """working: Ctrl-C has ended the command, and the reply was not done in time. paused: or held; until somebody lets
    the session go on, nothing comes."""
    message: Msg | None
    pending: tuple[PendingCall, ...] = ()

    @property
    def code(self) -> Exit:
        if self.status in ("waiting", "paused"):
            return Exit.PARKED
        if self.status == "failed":
            return Exit.FAILED
        if self.status == "working":
            return Exit.INTERRUPTED
        interrupted = self.message is not None and self.message.finished_reason is FinishedReason.INTERRUPTED
        return Exit.INTERRUPTED if interrupted else Exit.DONE


async def newest_event(session: Session) -> int:
    """Sequence number of the session's last event; 0 for a session that is not there yet."""
    try:
        return (await session.events(_BEYOND_THE_LAST)).last
    except NoSession:
        return 0


class Conversation:
    """One session at one terminal."""

    def __init__(self, session: Session, screen: Screen, approver: str, *, stays: bool | None = None) -> None:
        """`stays`: with a session that is paused, until it goes on; if not said, where a person is there."""
        self.session = session
        self._screen = screen
        self._approver = approver
        self._stays = screen.answers if stays is None else stays
        self.reply_id: str | None = None
        """The reply that Ctrl-C is for; None while there is none."""
        self._interrupted = False
        """An interrupt is under way: a question asked now would block its being sent."""
        self._left: set[str] = set()
        """Calls that the person does not want to be asked about again."""

    async def see_through(self, reply_id: str, start: int) -> Outcome:
        """Show events from `start` on, until the reply ends or nothing goes on without an answer from elsewhere."""
        self.reply_id, self._interrupted = reply_id, False
        progress, standing = Progress(self._screen, self.session, reply_id), Standing(self.session, self._screen)
        async with aclosing(self.session.following(start)) as following, self._screen.lively():
            while True:
                for event in await following.next():
                    if not standing.hear(event):
                        reply_id = await self._take(progress, reply_id, event)
                if progress.ended:
                    return await self._ended(reply_id)
                if not following.is_fresh:
                    continue
                if pending := await self._standing_still(progress, reply_id):
                    if not await self._decide(progress, pending):
                        return await self._parked(reply_id, pending)
                    following.expect_news()
                elif await standing.still() and not progress.running and not self._stays:
                    return Outcome("paused", (await self.session.result(reply_id)).message)

    async def _take(self, progress: Progress, reply_id: str, event: AgentEvent) -> str:
        """Show what is about the reply; returns the one that it is about from then on, which a request may join."""
        if event.type == "CUSTOM" and event.name == "joined" and reply_id in event.value["reply_ids"]:
            self.reply_id = reply_id = event.reply_id
            progress.joins(reply_id)
        if event.reply_id == reply_id:
            await progress.take(event)
        return reply_id

    async def ask(self, prompt: str, request_id: str, start: int) -> Outcome:
        """Send a request and see its reply through."""
        self.reply_id = None
        return await self.see_through(await self.session.submit(prompt, request_id=request_id), start)

    async def interrupt(self) -> None:
        """End our reply; says why where that can't be done."""
        self._interrupted = True
        self._screen.remark(Text("interrupting (Ctrl-C again leaves at once)"))
        try:
            await self.session.interrupt(reply_id=self.reply_id)
        except (NoSession, Refused) as refusal:
            self._interrupted = False
            self._screen.remark(Text(harmless(str(refusal))))

    def ask_again(self, call_id: str = "") -> None:
        """About what was left for later, too; or about that call alone."""
        self._left -= {call_id} if call_id else set(self._left)

    async def of_request(self, reply_id: str) -> str | None:
        """The reply that a request is a part of; None when that one has ended, so that it was seen."""
        found = await self.session.result(reply_id)
        if found.message is None or found.message.id == reply_id:
            return reply_id
        return None if found.status == "finished" else found.message.id

    async def catch_up(self, start: int = 1) -> Outcome | None:
        """Go on with a reply that was being made or waited when we came; None when there is none."""
        try:
            status = await self.session.status()
        except NoSession:
            return None
        reply_id = status.reply_id or next((request.reply_id for request in status.requests), "")
        return await self.see_through(reply_id, start) if reply_id else None

    async def _standing_still(self, progress: Progress, reply_id: str) -> list[PendingCall]:
        """The calls without whose answers nothing moves: ours, or those of a reply that ours is queued behind."""
        may_wait = progress.asked or progress.doubted or not progress.begun
        if self._interrupted or progress.running or progress.decided or not may_wait:
            return []
        pending = await self.session.pending()
        if (
            any(call.waits_for == "settlement" for call in pending)
            and (await self.session.status()).status != "waiting"
        ):
            return []  # such a call holds up nothing where the agent goes on without an answer
        return [call for call in pending if not progress.begun or call.reply_id == reply_id]

    async def _decide(self, progress: Progress, pending: Sequence[PendingCall]) -> bool:
        """Ask the person about each call; False when nothing was decided."""
        if not self._screen.answers:
            return False
        decided = False
        for call in pending:
            if self._interrupted or call.waits_for != "person" or call.call_id in self._left:
                continue
            decided = await self._decide_on(progress, call) or decided
        return decided

    async def _decide_on(self, progress: Progress, call: PendingCall) -> bool:
        try:
            answer = await self._screen.aside(lambda: ask_about(self._screen, call))
        except KeyboardInterrupt:
            # The loop has noted the signal too: it sends the interrupt as soon as it may run again.
            self._interrupted = True
            return True
        try:
            match answer:
                case Allow(rules=rules, input=edited):
                    progress.known_changes[call.call_id] = call.notice
                    await self.session.confirm(call, allow=True, input=edited, rules=rules, approver=self._approver)
                case Deny(reason):
                    await self.session.confirm(call, allow=False, reason=reason, approver=self._approver)
                case Leave():
                    self._left.add(call.call_id)
                    return False
        except Refused as refusal:
            self._screen.show(Text(harmless(str(refusal)), style="yellow"))
            return True
        if progress.begun:
            progress.decided.add(call.call_id)
        return True

    async def _ended(self, reply_id: str) -> Outcome:
        message = await self.session.wait(reply_id)
        failed = message.finished_reason in _FAILED
        return Outcome("failed" if failed else "finished", message)

    async def _parked(self, reply_id: str, pending: Sequence[PendingCall]) -> Outcome:
        if pending[0].reply_id != reply_id:
            self._screen.show(Text("queued behind a reply that waits:", style="yellow"))
        if self._screen.answers:
            for call in pending:
                self._screen.show(Text(f"waits: {call.tool}"), render.how_to_answer(self.session.id, call))
        else:
            self._screen.show(*render_session.waiting(self.session.id, pending))
        return Outcome("waiting", (await self.session.result(reply_id)).message, tuple(pending))


@asynccontextmanager
async def interrupting(conversation: Conversation) -> AsyncIterator[None]:
    """Ctrl-C inside interrupts the reply and waits a little for its end; the second Ctrl-C leaves at once."""
    loop = asyncio.get_running_loop()
    task = cast(asyncio.Task[None], asyncio.current_task())
    sent: list[asyncio.Task[None]] = []
    deadline: list[asyncio.TimerHandle] = []

    def on_interrupt() -> None:
        if sent or conversation.reply_id is None:
            task.cancel()
            return
        sent.append(loop.create_task(conversation.interrupt()))
        deadline.append(loop.call_later(INTERRUPT_SECONDS, task.cancel))

    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        for timer in deadline:
            timer.cancel()
