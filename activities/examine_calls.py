"""examine_calls: find out what permission needs to know about calls, without doing anything."""

from collections.abc import Sequence
from typing import Protocol

from temporalio import activity

from longhaul.activities.analysis.chain import Analyzers, told_of
from longhaul.activities.analysis.risk_findings import Analysing
from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.attempt.user_rules import found
from longhaul.activities.attempt.workspaces import Workspaces, not_here
from longhaul.activities.context.context_cache import Contexts, message_at
from longhaul.activities.contract import EXAMINE_CALLS, ExamineCalls, MessageAddress, SpecTexts
from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.middlewares.middleware import Stopped
from longhaul.activities.middlewares.wrapping import Wrapping
from longhaul.activities.models.failures.privacy import for_a_person
from longhaul.activities.process.cancelled_here import is_cancelled_here
from longhaul.activities.tool import NeedsDecision, Place, Tool
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.marked_arguments import checked
from longhaul.activities.tools.registry import Toolbox, finishing
from longhaul.agent.entries import CallsExamined
from longhaul.agent.permission.call_facts import CallFacts
from longhaul.agent.values.conversation.messages import ContentBlock, Msg, ToolCallBlock
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE
from longhaul.agent.values.spec.agent_spec import Secrets
from longhaul.agent.values.spec.mcp import MCPClient
from longhaul.stores.state.store import UserRules

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
    def __init__(  # noqa: PLR0913, PLR0917  one for each thing that a look needs
        self,
        contexts: Contexts,
        toolbox: Toolbox,
        workspaces: Workspaces,
        secrets: WorkerSecrets,
        user_rules: UserRules | None = None,
        analyzers: Analyzers | None = None,
        wrapping: Wrapping | None = None,
        mcp: McpServers | None = None,
    ) -> None:
        self._mcp = mcp or McpServers()
        self._wrapping = wrapping or Wrapping()
        self._analysing = Analysing(analyzers or Analyzers(), contexts)
        self._user_rules = user_rules
        self._secrets = secrets
        self._contexts = contexts
        self._toolbox = toolbox
        self._workspaces = workspaces

    @activity.defn(name=EXAMINE_CALLS)
    async def examine_calls(self, ask: ExamineCalls) -> CallsExamined:
        """Raises NotHere when a tool is missing here: another worker can look."""
        async with beating():
            toolbox = await self._mcp.beside(self._toolbox, ask.mcps, {call.name: "" for call in ask.calls})
            toolbox = finishing(toolbox, ask.structured_schema)
            if missing := [call.name for call in ask.calls if toolbox.get(call.name) is None]:
                raise not_here(f"this worker has no tool {missing[0]!r} to look with")
            place = await self._workspaces.find(ask.place)
            texts, facts, usage = dict[str, str](), dict[str, CallFacts](), None
            marked, told = dict[str, str](), told_of(())
            for call in ask.calls:
                said = await self.arguments_of(call.id, ask.said_in) if call.input is None else call.input
                texts[call.id], runs = self.heard(said, call.filled)
                if texts[call.id] != said:
                    marked[call.id] = texts[call.id]
                facts[call.id] = await self.look(call.name, runs, place, toolbox)
            if ask.analysis is not None:
                around = self._wrapping.of_analysis(ask).side_call
                facts, usage, told = await self._analysing.analyzed(ask, ask.analysis, texts, facts, around, toolbox)
                facts = {call_id: self._secrets.out_of_facts(each) for call_id, each in facts.items()}
            rules = await found(self._user_rules, ask.place.user_id, ask.user_rules_digest)
            return CallsExamined(
                facts=facts,
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
        """The tools whose calls this worker can look at without asking anybody; with the finish function of this reply
        where it is called."""
        called = [block.name for block in said if isinstance(block, ToolCallBlock)]
        answers = GENERATE_RESPONSE in called
        asked = (tool.input_schema for tool in spec.tools if answers and tool.name == GENERATE_RESPONSE)
        return finishing(self._mcp.known_beside(self._toolbox, mcps, called), next(asked, None))

    async def look(self, name: str, raw: str, place: Place, toolbox: Toolbox | None = None) -> CallFacts:
        """The findings about one call; what is wrong with it is a finding too."""
        return self._secrets.out_of_findings(await self._seen(toolbox or self._toolbox, name, raw, place), raw)

    async def _seen(self, toolbox: Toolbox, name: str, raw: str, place: Place) -> CallFacts:
        tool = toolbox.get(name)
        if tool is None:
            return CallFacts(cwd=str(place.cwd), not_understood=f"this worker has no tool {name!r} to look with")
        try:
            arguments = checked(toolbox, self._secrets, name, raw)
            return await tool.examine(arguments, place)
        except ArgumentsError as error:
            return CallFacts(cwd=str(place.cwd), arguments_error=str(error))
        except BaseException as error:
            # A tool's examiner is somebody else's code, and a call that could not be looked at must ask, not run.
            if is_cancelled_here(error):
                raise
            why = f"looking at the call failed ({type(error).__name__})"
            return CallFacts(cwd=str(place.cwd), not_understood=why)

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
        facts = await self.look(call.tool.name, wanted, call.place, call.toolbox)
        raise NeedsDecision(facts, "a middleware has changed the arguments", wanted)

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
