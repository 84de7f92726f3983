"""One reply from its request to its end: shown, decided on at the terminal, interrupted by Ctrl-C.

A message may name pictures, PDF files and sounds as `@drawing.png`. Where the reply waits for sub-agents, those
that wait for somebody are asked about.
"""

import asyncio
import base64
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

from rich.text import Text

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, Msg, TextBlock, UserMsg
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter import render_pending, render_session
from longhaul.starter.cli.exit_codes import Outcome, outcome_of
from longhaul.starter.cli.session_lookup import flags_of
from longhaul.starter.cli.terminal.dialogs import Allow, Deny, Leave, answered, ask_about
from longhaul.starter.cli.terminal.key_presses import QuestionGone
from longhaul.starter.cli.terminal.past_sessions import PausedSession, last_turns, shown_again
from longhaul.starter.cli.terminal.reply_printer import ReplyPrinter
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.client.tree import OpenBelow
from longhaul.starter.client.updates import MEDIA_TYPES
from longhaul.starter.client.wire import Refused
from longhaul.starter.render import CONFIRMED, answers_call, decided
from longhaul.starter.visible import harmless, one_line
from longhaul.stores.names import read_regular
from longhaul.workflows.contract import PendingCall, Status

SHORTEST_PAUSE_SECONDS = 3.0
LONGEST_PAUSE_SECONDS = 30.0
"""Between looks; a fifth of the time that nothing has changed."""


class SubAgents:
    """Of one reply of a lead."""

    def __init__(self, lead: Session) -> None:
        self._lead = lead
        self._asking: list[str] = []
        self._changed_at = self._looked_at = time.monotonic()

    async def asking(self) -> tuple[Sequence[OpenBelow], bool]:
        """Those that wait for somebody, and whether nothing below the lead moves until they are answered; nobody
        where it is too early to look again."""
        now = time.monotonic()
        pause = min(max((now - self._changed_at) / 5, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        if now - self._looked_at < pause:
            return (), False
        self._looked_at = now
        found, stands_still = await self._lead.tree.asking()
        calls = sorted(f"{each.card.workflow_id} {call.call_id}" for each in found for call in each.asks)
        if calls != self._asking:
            self._asking, self._changed_at = calls, now
            return found, False  # another one may have started that the index does not know yet
        return found, stands_still


MOST_BYTES = 20_000_000
"""More is not sent anyway, and a link to a device has no end."""

_NAMED = re.compile(r"""(?<!\S)@(?:"([^"\n]+)"|(\S+))""")


def with_pictures(text: str) -> str | Msg:
    """The text, and behind it each picture, PDF or sound that it names, read from where we stand. Raises Refused for
    one that can't be read; other files are named only, for the agent has tools to read them."""
    parts = [_read(name) for name in _pictures_in(text)]
    return UserMsg("user", [TextBlock(text=text), *parts]) if parts else text


def _pictures_in(text: str) -> Iterator[str]:
    named = dict.fromkeys(quoted or bare.rstrip(".,;:!?)") for quoted, bare in _NAMED.findall(text))
    return (name for name in named if Path(name).suffix.lower() in MEDIA_TYPES)


def _read(name: str) -> DataBlock:
    path = Path(name).expanduser()
    try:
        data = read_regular(os.path.realpath(path), MOST_BYTES)
    except OSError as error:
        why = f"{error.strerror or f'it is no file of at most {MOST_BYTES // 1_000_000} MB'}; nothing was sent"
        raise Refused(f"@{one_line(name)}: it can't be read: {why}") from error
    source = Base64Source(data=base64.b64encode(data).decode(), media_type=MEDIA_TYPES[path.suffix.lower()])
    return DataBlock(source=source, name=path.name)


INTERRUPT_SECONDS = 10.0
"""Granted to an interrupted reply to end in order; after that the command leaves it alone."""

_BEYOND_THE_LAST = 2**31


async def newest_event(session: Session) -> int:
    """Sequence number of the session's last event; 0 for a session that is not there yet."""
    try:
        return (await session.events(_BEYOND_THE_LAST)).last
    except NoSession:
        return 0


class Conversation:
    """One session at one terminal."""

    def __init__(self, session: Session, screen: Screen, approver: str, *, stays: bool | None = None) -> None:
        """`stays`: with a session that is paused or asleep, until it goes on; if not said, where a person is there with
        one that is paused, and with none that is asleep, for that may be days."""
        self.session = session
        self._screen = screen
        self._approver = approver
        self._stays = screen.answers if stays is None else stays
        self._sits_up = stays is True
        self.reply_id: str | None = None
        """The reply that Ctrl-C is for; None while there is none."""
        self.has_started = False
        """Something was asked, now or before: one can come back to it."""
        self.interrupted = False
        """An interrupt is under way: a question asked now would block its being sent."""
        self.left: set[str] = set()
        """Calls that the person does not want to be asked about again."""
        self._seen = 0
        """Number of the last event that was taken."""
        self._gone = asyncio.Event()
        """Set when the question that is open needs no answer any more."""
        self._below: dict[str, Conversation] = {}
        """By workflow id: with sub-agents that have asked something here."""

    async def see_through(self, reply_id: str, start: int) -> Outcome:
        """Show events from `start` on, until the reply ends or nothing goes on without an answer from elsewhere."""
        self.reply_id, self.has_started = reply_id, True
        self._may_ask()
        printer = ReplyPrinter(self._screen, self.session, reply_id)
        paused, sub_agents = PausedSession(self.session, self._screen), SubAgents(self.session)
        async with aclosing(self.session.following(start)) as following, self._screen.lively(), printer.watched():
            while True:
                for event in await following.next():
                    self._seen = event.seq or self._seen
                    if not paused.hear(event):
                        reply_id = await self._take(printer, reply_id, event)
                if printer.ended:
                    return await self._ended(reply_id)
                if printer.delegates and (waiting := await self._wait_below(sub_agents)):
                    return Outcome("waiting", await self._so_far(reply_id), waiting)
                if not following.is_fresh:
                    continue
                if pending := await self._standing_still(printer, reply_id):
                    if not await self._decide(printer, pending):
                        return await self._parked(reply_id, pending)
                    following.expect_news()
                elif await paused.still() and not printer.running and not self._stays:
                    return Outcome("paused", await self._so_far(reply_id))

    async def _take(self, printer: ReplyPrinter, reply_id: str, event: AgentEvent) -> str:
        """Show what is about the reply; returns the one that it is about from then on, which a request may join."""
        if event.type == "CUSTOM" and event.name == "joined" and reply_id in event.value["reply_ids"]:
            self.reply_id = reply_id = event.reply_id
            printer.joins(reply_id)
        if event.reply_id == reply_id:
            await printer.take(event)
        return reply_id

    async def ask(
        self, prompt: str | Msg, request_id: str, start: int, schema: dict[str, Any] | None = None
    ) -> Outcome:
        """Send a request and see its reply through. `schema`: what the answer has to fit."""
        self.reply_id = None
        sent = await self.session.submit(prompt, request_id=request_id, structured_model=schema)
        return await self.see_through(sent, start)

    async def interrupt(self) -> None:
        """End our reply; says why where that can't be done."""
        for one in (self, *self._below.values()):
            one.ask_no_more()
        self._screen.remark(Text("interrupting (press Ctrl-C again to leave at once)"))
        try:
            await self.session.interrupt(reply_id=self.reply_id)
        except (NoSession, Refused) as refusal:
            self.interrupted = False
            self._screen.remark(Text(harmless(str(refusal))))

    def _may_ask(self) -> None:
        for one in (self, *self._below.values()):
            one.interrupted = False

    def ask_no_more(self) -> None:
        self.interrupted = True
        self._gone.set()

    def ask_again(self, call_id: str = "") -> None:
        """About what was left for later, too; or about that call alone."""
        for one in (self, *self._below.values()):
            one.left -= {call_id} if call_id else set(one.left)

    async def of_request(self, reply_id: str) -> str | None:
        """The reply that a request is a part of; None when that one has ended, so that it was seen."""
        found = await self.session.result(reply_id)
        if found.message is None or found.message.id == reply_id:
            return reply_id
        return None if found.status == "finished" else found.message.id

    async def under_way(self) -> str:
        """The reply that is being made, or that a request waits for; empty when there is none."""
        try:
            status = await self.session.status()
        except NoSession:
            return ""
        return _reply_of(status)

    async def come_back(self) -> Outcome | None:
        """Show what was said last, and go on with the reply that was being made when we came. None when there is
        none."""
        reply_id = await self.show_last()
        return await self.see_through(reply_id, 1) if reply_id else None

    async def show_last(self) -> str:
        """What was said last; returns the reply that is being made now, of which nothing was shown."""
        try:
            status = await self.session.status()
        except NoSession:
            return ""
        self.has_started = True
        # As of one moment: a reply that ends meanwhile is neither left out of both nor shown twice.
        turns = await last_turns(self.session, status)
        self._screen.show(*shown_again(turns, self._screen))
        self.reply_id = _reply_of(status) or None
        return self.reply_id or ""

    async def catch_up(self, start: int = 1) -> Outcome | None:
        """Go on with a reply that was being made or waited when we came; None when there is none."""
        reply_id = await self.under_way()
        return await self.see_through(reply_id, start) if reply_id else None

    async def _standing_still(self, printer: ReplyPrinter, reply_id: str) -> list[PendingCall]:
        """The calls without whose answers nothing moves: ours, or those of a reply that ours is queued behind."""
        sleeps = printer.asleep and not self._sits_up
        may_wait = printer.asked or printer.doubted or not printer.started or sleeps
        if self.interrupted or printer.running or printer.decided or not may_wait:
            return []
        pending = await self.session.own_pending()
        printer.know(pending)
        if (
            any(call.waits_for == "resolution" for call in pending)
            and (await self.session.status()).status != "waiting"
        ):
            return []  # such a call holds up nothing where the agent goes on without an answer
        return [call for call in pending if not printer.started or call.reply_id == reply_id]

    async def _decide(self, printer: ReplyPrinter, pending: Sequence[PendingCall]) -> bool:
        """Ask the person about each call, and send the answers in one operation; False when nothing was decided."""
        if not self._screen.answers:
            return False
        asked = [call for call in pending if call.waits_for == "person" and call.call_id not in self.left]
        if len(asked) > 1:
            self._screen.show_folded(*render_pending.call_list(asked))
        answers: list[tuple[PendingCall, Allow | Deny]] = []
        answer: Allow | Deny | Leave | None = Leave()
        for place, call in enumerate(asked, 1):
            number = f"{place} of {len(asked)}: " if len(asked) > 1 else ""
            answer = None if self.interrupted else await self._ask(call, number)
            if answer is None:
                break
            if isinstance(answer, Leave):
                self.left.add(call.call_id)
                continue
            answers.append((call, answer))
            if isinstance(answer, Allow) and (answer.rules or answer.input):
                break  # a rule may answer the next question too, and an edit may be refused: that is seen first
        if answers and not self.interrupted:
            await self._send(printer, answers)
        return bool(answers) or answer is None

    async def _wait_below(self, sub_agents: SubAgents) -> tuple[PendingCall, ...]:
        """Have the person answer what sub-agents ask, or say what it is; returns what they wait for when nothing moves
        without an answer from elsewhere."""
        asking, stands_still = await sub_agents.asking()
        answered = False
        for each in asking:
            name = each.card.workflow_id
            below = self._below.setdefault(name, Conversation(each.session, self._screen, self._approver))
            if any(call.call_id not in below.left for call in each.asks):
                answered = await below.answer_as_sub_agent(self.session) or answered
            if below.interrupted:
                self.interrupted = True
            if self.interrupted:
                return ()
        waits = stands_still and not answered
        return tuple(call for each in asking for call in each.asks) if waits else ()

    async def answer_as_sub_agent(self, lead: Session) -> bool:
        """Whether something was answered, or nothing has to be any more. What was not is said once, with the commands
        that answer it: more budget is given at the lead's name, which has put it aside."""
        try:
            self._seen = await newest_event(self.session)
            pending = [call for call in await self.session.own_pending() if call.call_id not in self.left]
        except NoSession:
            return True
        if not pending or await self._decide(ReplyPrinter(self._screen, self.session, ""), pending):
            return True
        self.left |= {call.call_id for call in pending}
        lacks = [call for call in pending if call.waits_for == "budget"]
        others = [call for call in pending if call not in lacks]
        self._screen.show_folded(
            *render_session.waiting(self.session.id, others, flags_of(self.session)),
            *render_session.waiting(lead.id, lacks, ["--at", self.session.id, *flags_of(lead)]),
        )
        return False

    async def _ask(self, call: PendingCall, number: str) -> Allow | Deny | Leave | None:
        """What the person decides; None when nobody has to any more, or all of it is interrupted."""
        self._gone = gone = asyncio.Event()
        watch = asyncio.create_task(self._told_who_answers(call, gone))
        try:
            return await self._screen.aside(partial(ask_about, self._screen, call, self.session, number, gone))
        except QuestionGone:
            return None
        except KeyboardInterrupt:
            # The loop has noted the signal too: it sends the interrupt as soon as it may run again.
            self.interrupted = True
            return None
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def _told_who_answers(self, call: PendingCall, gone: asyncio.Event) -> None:
        """Wait for an answer from elsewhere, of which the events tell that come after those that were taken."""
        async with aclosing(self.session.following(self._seen + 1, live=False, shown=False)) as news:
            while not gone.is_set():
                for event in await news.next():
                    if not gone.is_set() and answers_call(event, call):
                        gone.set()
                        self._screen.end_line()
                        self._screen.show(Text("\nthis needs no answer from here anymore:", "yellow"))
                        self._screen.show(*(decided(event, lambda _: call.tool) if event.type == CONFIRMED else ()))

    async def _send(self, printer: ReplyPrinter, answers: Sequence[tuple[PendingCall, Allow | Deny]]) -> None:
        """All of them count, or none: where one is refused, they are asked for again."""
        decisions = [answered(call, answer) for call, answer in answers]
        printer.known_changes |= {call.call_id: call.notice for call, answer in answers if isinstance(answer, Allow)}
        try:
            await self.session.decide([call for call, _ in answers], decisions, self._approver)
        except Refused as refusal:
            self._screen.show(Text(harmless(str(refusal)), style="yellow"))
            return
        if printer.started:
            printer.decided.update(call.call_id for call, _ in answers)

    async def _ended(self, reply_id: str) -> Outcome:
        return outcome_of(await self.session.wait(reply_id))

    async def _parked(self, reply_id: str, pending: Sequence[PendingCall]) -> Outcome:
        if pending[0].reply_id != reply_id:
            self._screen.show(Text("queued after a reply that waits:", style="yellow"))
        if self._screen.answers:
            for call in pending:
                self._screen.show(Text(f"waits: {one_line(call.tool)}"))
                self._screen.show(render_pending.how_to_answer(self.session.id, call, flags_of(self.session)))
            if self._sits_up and any(call.waits_for == "person" for call in pending):
                self._screen.show(Text("  or here: /approve"))
        else:
            self._screen.show_folded(*render_session.waiting(self.session.id, pending, flags_of(self.session)))
        return Outcome("waiting", await self._so_far(reply_id), tuple(pending))

    async def _so_far(self, reply_id: str) -> Msg | None:
        """The message as hooks make it; None for a request that is queued."""
        message = (await self.session.result(reply_id)).message
        return (
            None if message is None else cast(Msg, await self.session.hooks.after("reply", self.session, None, message))
        )


def _reply_of(status: Status) -> str:
    return status.reply_id or next((request.reply_id for request in status.requests), "")


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
