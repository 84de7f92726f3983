"""The demo, act by act: an agent fixes a project while its worker and its server are killed under it; each step is
said with its number.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from rich.text import Text
from temporalio.client import Client

from longhaul.agent.values.conversation.messages import Msg, ToolResultState
from longhaul.starter import render, render_pending, render_session
from longhaul.starter.cli.terminal.key_presses import ask
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.connection.query_retries import Pauses
from longhaul.starter.demo import story
from longhaul.starter.demo.stage import TASK_QUEUE, Stage, StageFailed
from longhaul.starter.demo.story import Cost
from longhaul.starter.render import FAILED_LINES, end_of
from longhaul.starter.settings import SettingsOfTheUser
from longhaul.workflows.contract import PendingCall

INDENT = "   "


class Narrator:
    """Short sentences; every step is numbered."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._steps = 0

    @property
    def has_person(self) -> bool:
        return self._screen.answers

    def step(self, sentence: str) -> None:
        self._steps += 1
        self._screen.show(Text.assemble(f"\n{self._steps}. ", (sentence, "bold")))

    def remark(self, sentence: str) -> None:
        self._screen.show(Text(INDENT + sentence, style="dim"))

    def show(self, shown: Text) -> None:
        """Any text of the agent's, already harmless, below a step."""
        indented = Text("\n").join(Text(INDENT).append_text(line) for line in shown.split("\n"))
        self._screen.show(indented)

    def calls(self, messages: Sequence[Msg]) -> None:
        """Each call that has a result, with that result, on a line."""
        arguments = {call.id: call.input for message in messages for call in message.get_tool_calls()}
        for message in messages:
            for result in message.get_tool_results():
                shown = render.result_line(
                    result.name, arguments.get(result.id, ""), result.state, result.get_text(), width=self._width
                )
                self.show(shown)
                if result.state is ToolResultState.ERROR:
                    for line in end_of(result.get_text(), FAILED_LINES)[0]:
                        self.show(line)

    def transcript(self, messages: Sequence[Msg]) -> None:
        for line in render_session.transcript(messages, width=self._width):
            self.show(line)

    def cost(self, cost: Cost, kills: int) -> None:
        self.step(
            f"It took {cost.seconds:.1f} s with {kills} processes killed, {cost.model_calls} model calls, "
            f"{cost.input_tokens} tokens in and {cost.output_tokens} out."
        )
        self.remark(f"all of it is in Temporal's history: {cost.events} events, {cost.history_bytes / 1000:.0f} kB")

    @property
    def _width(self) -> int:
        return self._screen.width - len(INDENT)


MOMENT_SECONDS = 1.0
"""How long the approved edit is watched not happening."""
PATIENCE_SECONDS = 60.0


class Declined(Exception):
    """The person at the terminal said no."""


@dataclass(slots=True)
class Play:
    """One performance."""

    stage: Stage
    folder: Path
    narrator: Narrator

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def script(self) -> Path:
        return self.folder / "script.jsonl"

    async def perform(self) -> list[str]:
        """All acts. Returns what went wrong: nothing, if all is well. Raises Declined, StageFailed."""
        story.lay_out_project(self.project)
        story.write_script(self.script, long_thought=True)
        async with Longhaul.connect(
            self.stage.server.address, "default", SettingsOfTheUser(task_queue=TASK_QUEUE)
        ) as app:
            session = app.session(
                story.SESSION, user=story.USER, agent=story.agent(self.script, self.project.resolve())
            )
            async with asyncio.timeout(PATIENCE_SECONDS):
                began, reply_id = await self._begin(session)
                await self._crash_in_mid_thought(app.client, session)
                call = await self._park(session, reply_id)
            await self._crash_everything_and_approve(app.client, session, call)
            async with asyncio.timeout(PATIENCE_SECONDS):
                reply = await self._come_back(session, reply_id)
            seconds = time.monotonic() - began
            status = await session.status()
            told = await story.activities(app.client, session.workflow_id)
            events, history_bytes = await story.history_size(app.client, session.workflow_id)
            wrong = story.complaints(self.project, told, reply)
            if not wrong:
                self.narrator.step(
                    "Checked by the demo itself: the tests are green, and the edit was made exactly once."
                )
            self.narrator.cost(
                story.Cost(
                    events, history_bytes, status.model_calls, status.input_tokens, status.output_tokens, seconds
                ),
                self.stage.kills,
            )
            return wrong

    async def _begin(self, session: Session) -> tuple[float, str]:
        worker = await self.stage.start_worker()
        self.narrator.step(f"A Temporal server and a worker (process {worker}) are running.")
        self.narrator.remark(f"look inside: {self.web_page(session)}")
        if story.tests_are_green(self.project):
            raise StageFailed("the demo's project is not broken; its files have been changed")
        began = time.monotonic()
        reply_id = await session.submit(story.REQUEST, request_id="demo")
        self.narrator.step(f"The agent is asked: {story.REQUEST}")
        self.narrator.remark("it reads and greps without approval, and an allow rule lets it run the tests")
        return began, reply_id

    async def _crash_in_mid_thought(self, client: Client, session: Session) -> None:
        async def thinks_long() -> bool:
            status = await session.status()
            if status.last_error is not None:
                raise StageFailed(f"the agent failed: {status.last_error.message}")
            attempt = await story.attempt_of_model_call(client, session.workflow_id)
            return status.model_calls == story.LONG_THOUGHT and attempt > 0

        pauses = Pauses()
        while not await thinks_long():
            await pauses.rest()
        self.narrator.calls([message async for message in session.transcript()])
        await self.stage.kill_worker()
        # The next attempt is spared the wait; what it says is the same.
        story.write_script(self.script, long_thought=False)
        self.narrator.step("kill -9: the worker dies in the middle of a model call. A new one is started.")
        worker = await self.stage.start_worker()
        self.narrator.remark(f"process {worker} asks the model again; nothing before that is repeated")

    async def _park(self, session: Session, reply_id: str) -> PendingCall:
        waiting = await session.wait(reply_id)
        if waiting.finished_reason is not None:
            raise StageFailed(f"the agent ended before it asked for anything: {waiting.error}")
        (call,) = await session.pending()
        self.narrator.step("The agent wants to change a file, and asks. It now waits, for days if need be:")
        self.narrator.show(render_pending.pending_call(call))
        return call

    async def _crash_everything_and_approve(self, client: Client, session: Session, call: PendingCall) -> None:
        await self.stage.kill_worker()
        await self.stage.kill_server()
        self.narrator.step("kill -9: worker and server, both. Only the server is started again.")
        await self.stage.server.start()
        untouched = _stamp(self.project / story.BROKEN_FILE)
        if not self.narrator.has_person:
            self.narrator.remark("no terminal, so nobody to ask: the demo says yes itself")
            allowed = True
        else:
            answer = ask("   No worker is running now. Approve the change all the same? [Y/n] ")
            # Enter is yes; Ctrl-D is no answer, and so no approval.
            allowed = answer is not None and answer[:1] in ("", "y", "Y")
        decision = {"call_id": call.call_id, "decision": "allow" if allowed else "deny"}
        await client.get_workflow_handle(session.workflow_id).signal(
            "confirm", {"decisions": [decision], "approver": story.APPROVER}
        )
        if not allowed:
            raise Declined(
                "you denied it, so the file stays as it was; the demo's script knows no other way and ends here"
            )
        await asyncio.sleep(MOMENT_SECONDS)
        if _stamp(self.project / story.BROKEN_FILE) != untouched:
            raise StageFailed("the file has changed although no worker runs")
        self.narrator.remark("approved, with no worker alive: the decision is safe with the server, the file untouched")

    async def _come_back(self, session: Session, reply_id: str) -> Msg:
        worker = await self.stage.start_worker()
        self.narrator.step(f"A third worker (process {worker}) starts, finds the approval and goes on.")
        reply = await session.wait(reply_id)
        self.narrator.step("The agent is done. The whole conversation, as it was recorded:")
        self.narrator.transcript([message async for message in session.transcript()])
        return reply

    def web_page(self, session: Session) -> str:
        """The session's page in the Web UI."""
        return f"{self.stage.server.ui_url}/namespaces/default/workflows/{quote(session.workflow_id, safe='')}"


def _stamp(file: Path) -> tuple[int, bytes]:
    return file.stat().st_mtime_ns, file.read_bytes()
