"""examine_calls: find out what permission needs to know about calls, without doing anything."""

from temporalio import activity

from activities import own_session
from activities.analysis.chain import Analyzers
from activities.analysis.looking import Analysing
from activities.contexts import Contexts, message_at
from activities.contract import EXAMINE_CALLS, ExamineCalls, MessageAddress
from activities.heartbeat import beating
from activities.secrets import Secrets
from activities.stores.user_rules import UserRules
from activities.tools.arguments import ArgumentsError
from activities.tools.registry import Toolbox
from activities.tools.tool import Place
from activities.user_rules import found
from activities.workspaces import Workspaces, not_here
from agent.entries import CallsExamined
from agent.messages import Msg, ToolCallBlock
from agent.permission.facts import CallFacts


class Examination:
    def __init__(
        self,
        contexts: Contexts,
        toolbox: Toolbox,
        workspaces: Workspaces,
        secrets: Secrets | None = None,
        user_rules: UserRules | None = None,
        analyzers: Analyzers | None = None,
    ) -> None:
        self._analysing = Analysing(analyzers or Analyzers(), contexts, toolbox)
        self._user_rules = user_rules
        self._secrets = secrets or Secrets()
        self._contexts = contexts
        self._toolbox = toolbox
        self._workspaces = workspaces

    @activity.defn(name=EXAMINE_CALLS)
    async def examine_calls(self, ask: ExamineCalls) -> CallsExamined:
        """Raises NotHere when a tool is missing here: another worker can look."""
        async with beating():
            if missing := [call.name for call in ask.calls if not self.knows(call.name)]:
                raise not_here(f"this worker has no tool {missing[0]!r} to look with")
            place = await self._workspaces.find(ask.place)
            texts, facts, usage = dict[str, str](), dict[str, CallFacts](), None
            for call in ask.calls:
                texts[call.id] = await self.arguments_of(call.id, ask.said_in) if call.input is None else call.input
                facts[call.id] = await self.look(call.name, texts[call.id], place)
            if ask.analysis is not None:
                facts, usage = await self._analysing.analyzed(ask, ask.analysis, texts, facts)
                facts = {call_id: self._secrets.out_of_facts(each) for call_id, each in facts.items()}
            rules = await found(self._user_rules, ask.place.user_id, ask.user_rules_digest)
            return CallsExamined(facts=facts, user_rules=rules.rules, user_rules_digest=rules.digest, usage=usage)

    def knows(self, name: str) -> bool:
        """Whether this worker has the tool, and so can look at its calls."""
        return self._toolbox.get(name) is not None

    async def look(self, name: str, raw: str, place: Place) -> CallFacts:
        """The findings about one call; what is wrong with it is a finding too."""
        return self._secrets.out_of_facts(await self._seen(name, raw, place))

    async def _seen(self, name: str, raw: str, place: Place) -> CallFacts:
        tool = self._toolbox.get(name)
        if tool is None:
            return CallFacts(cwd=str(place.cwd), not_understood=f"this worker has no tool {name!r} to look with")
        try:
            arguments = self._toolbox.validate(name, raw)
            return await tool.examine(arguments, place)
        except ArgumentsError as error:
            return CallFacts(cwd=str(place.cwd), arguments_error=str(error))
        except Exception as error:  # noqa: BLE001
            # A tool's examiner is somebody else's code, and a call that could not be looked at must ask, not run.
            why = f"looking at the call failed ({type(error).__name__})"
            return CallFacts(cwd=str(place.cwd), not_understood=why)

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
