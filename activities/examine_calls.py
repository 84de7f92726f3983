"""examine_calls: find out what permission needs to know about calls, without doing anything; what the agent's security
analyzers think of a call is one of the findings.

A rehearsal decides on a call without a session: the same is looked at and judged, and then nothing is run.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from temporalio import activity

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.own_session import found
from longhaul.activities.attempt.workspaces import Workspaces, not_here
from longhaul.activities.context.context_cache import Contexts, message_at
from longhaul.activities.contract import EXAMINE_CALLS, ExamineCalls, MessageAddress, RiskAnalysis, SpecTexts
from longhaul.activities.middlewares.middleware import Stopped
from longhaul.activities.models.failures.error_bodies import for_a_person
from longhaul.activities.process.threads import is_cancelled_here
from longhaul.activities.risk_analysis import Analyzers, Around, Case, Finding, JudgeNotes, told_of
from longhaul.activities.tool import NeedsDecision, Place, Tool
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.registry import Toolbox, checked, finishing
from longhaul.activities.tools.target_tools import with_recorded
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.decision import BEHAVIOUR
from longhaul.agent.decisions.call_rulings import judge
from longhaul.agent.entries import CallRuling, CallsExamined
from longhaul.agent.journal import Journal
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.permission.rule_matching import ruled_folders, ruled_paths
from longhaul.agent.plain.values import digest_of
from longhaul.agent.reducer.agent_state import AgentState, OpenCall
from longhaul.agent.reducer.session_state import Provided
from longhaul.agent.values.conversation.messages import ContentBlock, Msg, ToolCallBlock, Usage
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec, Secrets
from longhaul.agent.values.spec.mcp import MCPClient
from longhaul.stores.state.store import UserRules

SIDE_BY_SIDE = 8
"""Calls that are looked at together; `workflows.activity_options` gives the activity time for all of them."""


class Analysing:
    def __init__(self, analyzers: Analyzers, contexts: Contexts) -> None:
        self._analyzers = analyzers
        self._contexts = contexts

    async def analyzed(
        self,
        ask: ExamineCalls,
        risk_analysis: RiskAnalysis,
        texts: Mapping[str, str],
        analysis: dict[str, CallAnalysis],
        around: Around,
        toolbox: Toolbox,
    ) -> tuple[dict[str, CallAnalysis], Usage | None, JudgeNotes]:
        """The findings with risk and reason, what it cost, and what was left out of requests for it. `texts` are the
        arguments by call id."""
        digest = digest_of(risk_analysis.context.model_dump(mode="json"))
        room = asyncio.Semaphore(SIDE_BY_SIDE)
        fetched: asyncio.Task[Sequence[Msg]] | None = None

        async def context() -> Sequence[Msg]:
            nonlocal fetched
            fetched = fetched or asyncio.create_task(self._context(risk_analysis))
            return await asyncio.shield(fetched)

        async def one(number: int, call_id: str, name: str) -> Finding:
            (tool,) = toolbox.descriptors([name])
            case = Case(
                call_id=call_id,
                tool=tool,
                arguments=texts[call_id],
                analysis=analysis[call_id],
                tainted=risk_analysis.tainted,
                context=context,
                model=risk_analysis.model,
                config=risk_analysis.config,
                call_number=risk_analysis.call_number + number,
                around=around,
            )
            async with room:
                return await self._analyzers.analyze(case, risk_analysis.analyzers, digest)

        try:
            found = await asyncio.gather(*(one(number, call.id, call.name) for number, call in enumerate(ask.calls)))
        finally:
            if fetched is not None:
                fetched.cancel()
        paid = [finding.usage for finding in found if finding.usage is not None]
        with_risk = {
            call.id: analysis[call.id].model_copy(update={"risk": finding.risk.value, "risk_reason": finding.reason})
            for call, finding in zip(ask.calls, found, strict=True)
        }
        return with_risk, sum(paid[1:], paid[0]) if paid else None, told_of(found)

    async def _context(self, risk_analysis: RiskAnalysis) -> Sequence[Msg]:
        epoch = risk_analysis.context.epoch
        session = self._contexts.session(own_session.key(), epoch)
        return await self._contexts.resolve(
            session, risk_analysis.context, lambda start: own_session.pull_page(epoch, start)
        )


LONGEST_CHANGED_CHARS = 200_000
"""Of arguments that a middleware wants: they are recorded whole, in the session's history."""


class CallDecidedOn(Protocol):
    """A call as it was decided on."""

    @property
    def toolbox(self) -> Toolbox: ...
    @property
    def tool(self) -> Tool: ...
    @property
    def place(self) -> Place: ...
    @property
    def arguments(self) -> str: ...


class Examination:
    def __init__(
        self, parts: WorkerParts, user_rules: UserRules | None = None, analyzers: Analyzers | None = None
    ) -> None:
        self._mcp, self._wrapping, self._secrets = parts.mcp, parts.wrapping, parts.secrets
        self._contexts, self._toolbox, self._workspaces = parts.contexts, parts.toolbox, parts.workspaces
        self._analysing = Analysing(analyzers or Analyzers(), parts.contexts)
        self._user_rules = user_rules

    @activity.defn(name=EXAMINE_CALLS)
    async def examine_calls(self, ask: ExamineCalls) -> CallsExamined:
        """Raises NotHere when a tool is missing here: another worker can look."""
        async with beating():
            toolbox = await self._mcp.beside(self._toolbox, ask.mcps, {call.name: "" for call in ask.calls})
            toolbox = with_recorded(finishing(toolbox, ask.structured_schema), ask.targets)
            if missing := [call.name for call in ask.calls if toolbox.get(call.name) is None]:
                raise not_here(f"this worker has no tool {missing[0]!r} to look with")
            place = await self._workspaces.find(ask.place)
            texts, analysis, usage = dict[str, str](), dict[str, CallAnalysis](), None
            marked, told = dict[str, str](), told_of(())
            for call in ask.calls:
                said = await self.arguments_of(call.id, ask.said_in) if call.input is None else call.input
                texts[call.id], runs = self.heard(said, call.filled)
                if texts[call.id] != said:
                    marked[call.id] = texts[call.id]
                analysis[call.id] = await self.look(call.name, runs, place, toolbox)
            if ask.risk_analysis is not None:
                around = self._wrapping.of_analysis(ask).side_call
                analysis, usage, told = await self._analysing.analyzed(
                    ask, ask.risk_analysis, texts, analysis, around, toolbox
                )
                analysis = {call_id: self._secrets.out_of_analysis(each) for call_id, each in analysis.items()}
            rules = await found(self._user_rules, ask.place.user_id, ask.user_rules_digest)
            return CallsExamined(
                analysis=analysis,
                user_rules=rules.rules,
                user_rules_digest=rules.digest,
                marked=marked,
                usage=usage,
                model=told["model"],
                adjusted=tuple(for_a_person(self._secrets.masker.masked(note)) for note in told["notes"]),
            )

    def heard(self, arguments: str, filled: Sequence[str] | None) -> tuple[str, str]:
        """Arguments that somebody has just written: as they are shown, and as they run. `filled`: names of the secrets
        that the tool finds in the place of their marks; None where what was written runs."""
        if filled is None:
            return self._secrets.marked(arguments), arguments
        kept = self._secrets.kept(arguments)
        return kept, self._secrets.filled(kept, filled)

    def marked(
        self, content: tuple[ContentBlock, ...], secrets: Secrets | None
    ) -> tuple[tuple[ContentBlock, ...], dict[str, str]]:
        """What a model has said as it is shown, and the arguments that run, by call id, where those are others.
        `secrets`: where the session records marks alone."""
        runs, shown = dict[str, str](), list[ContentBlock]()
        for block in content:
            if isinstance(block, ToolCallBlock):
                arguments, run = self.heard(block.input, secrets.given_to(block.name) if secrets else None)
                # An answer is recorded as it is shown, so that is what has to fit.
                if run != arguments and block.name != GENERATE_RESPONSE:
                    runs[block.id] = run
                block = block.model_copy(update={"input": arguments})  # noqa: PLW2901  the marked one takes its place
            shown.append(block)
        return tuple(shown), runs

    def known(self, mcps: Sequence[MCPClient], said: Sequence[ContentBlock], spec: SpecTexts) -> Toolbox:
        """The tools whose calls this worker can look at without asking anybody; with those Temporal tools, and with the
        finish function of this reply, that are called."""
        called = [block.name for block in said if isinstance(block, ToolCallBlock)]
        answers = GENERATE_RESPONSE in called
        asked = (tool.input_schema for tool in spec.tools if answers and tool.name == GENERATE_RESPONSE)
        toolbox = finishing(self._mcp.known_beside(self._toolbox, mcps, called), next(asked, None))
        return with_recorded(toolbox, (tool for tool in spec.tools if tool.target is not None and tool.name in called))

    async def look(self, name: str, raw: str, place: Place, toolbox: Toolbox | None = None) -> CallAnalysis:
        """The findings about one call; what is wrong with it is a finding too."""
        return self._secrets.out_of_findings(await self._seen(toolbox or self._toolbox, name, raw, place), raw)

    async def _seen(self, toolbox: Toolbox, name: str, raw: str, place: Place) -> CallAnalysis:
        tool = toolbox.get(name)
        if tool is None:
            return CallAnalysis(cwd=str(place.cwd), not_understood=f"this worker has no tool {name!r} to look with")
        try:
            arguments = checked(toolbox, self._secrets, name, raw)
            return await tool.examine(arguments, place)
        except ArgumentsError as error:
            return CallAnalysis(cwd=str(place.cwd), arguments_error=str(error))
        except BaseException as error:
            # A tool's examiner is somebody else's code, and a call that could not be looked at must ask, not run.
            if is_cancelled_here(error):
                raise
            why = f"looking at the call failed ({type(error).__name__})"
            return CallAnalysis(cwd=str(place.cwd), not_understood=why)

    async def check_decided(self, call: CallDecidedOn, wanted: str) -> None:
        """Whether these are the arguments that the call was decided on with. Of others it raises NeedsDecision with the
        findings, and Stopped where no call may have them; nothing ran then."""
        if wanted == call.arguments:
            return
        if self._secrets.masker.found(call.arguments) or self._secrets.masker.found(wanted):
            # They would be recorded; and what is recorded with a mark would not be known again as the same.
            raise Stopped("arguments with a secret in them can't be changed")
        if len(wanted) > LONGEST_CHANGED_CHARS:
            raise Stopped(f"the changed arguments have more than {LONGEST_CHANGED_CHARS:,} characters")
        try:
            checked(call.toolbox, self._secrets, call.tool.name, wanted)
        except ArgumentsError as error:
            raise Stopped(f"the changed arguments do not fit: {error}") from None
        analysis = await self.look(call.tool.name, wanted, call.place, call.toolbox)
        raise NeedsDecision(analysis, "a middleware has changed the arguments", wanted)

    async def arguments_of(self, call_id: str, said_in: MessageAddress) -> str:
        """The arguments of a call from the message that made it, wherever that is to be had."""
        session = self._contexts.session(own_session.key(), said_in.epoch)
        held = session.messages[said_in.index] if said_in.index < len(session.messages) else None
        arguments = _arguments(held, call_id) if held else None
        if arguments is None:
            fetched = await message_at(lambda start: own_session.pull_page(said_in.epoch, start), said_in.index)
            arguments = _arguments(fetched, call_id)
        if arguments is None:
            raise LookupError(f"message {said_in.index} holds no call {call_id!r}")
        return arguments


def _arguments(message: Msg, call_id: str) -> str | None:
    for block in message.content:
        if isinstance(block, ToolCallBlock) and block.id == call_id:
            return block.input
    return None


AGENT = "rehearsal"


class Rehearsal:
    """Decides on calls as a session with these tools, this permission and this workspace would before its first call.

    `root` is the workspace: a directory, absolute and resolved. It is not marked as a workspace, nor changed. `skills`
    are the folders of skills, as the agent names them.
    """

    def __init__(
        self, toolbox: Toolbox, permission: PermissionContext, root: Path, skills: tuple[str, ...] = ()
    ) -> None:
        folders, paths = ruled_folders(permission, str(root)), ruled_paths(permission)
        self._place = Place(root=root, cwd=root, ruled=folders, closed=paths, skills=skills)
        self._examination = Examination(WorkerParts(workspaces=Workspaces(root), toolbox=toolbox))
        self._journal = Journal(
            state=AgentState(
                session_id=AGENT, user_id=None, agent=AGENT, permission_context=permission, behaviour=BEHAVIOUR
            ),
            spec=AgentSpec(name=AGENT, permission=permission),
            provided=Provided(
                tools={tool.name: tool for tool in toolbox.descriptors(toolbox.names)}, workspace_root=str(root)
            ),
        )

    async def decide(self, tool: str, raw_input: str) -> CallRuling:
        """What would be said of a call with these arguments, as the model writes them: JSON text. Never raises for
        what is wrong with them, nor for a tool that does not exist: then the verdict is `invalid`."""
        return self._judged(tool, raw_input, await self._examination.look(tool, raw_input, self._place))

    async def decide_on_any(self, tool: Tool) -> CallRuling:
        """What would be said of a call whose arguments no rule speaks of, and that the tool itself finds nothing in."""
        return self._judged(tool.name, "{}", await tool.examine({}, self._place))

    def _judged(self, tool: str, raw_input: str, analysis: CallAnalysis) -> CallRuling:
        block = ToolCallBlock(id=AGENT, name=tool, input=raw_input)
        return judge(OpenCall(block=block, input=raw_input, analysis=analysis), self._journal)
