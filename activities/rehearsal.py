"""The decision on a call without a session: the same looking and the same judging, and then nothing is run."""

from pathlib import Path

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.context.context_cache import Contexts
from longhaul.activities.examine_calls import Examination
from longhaul.activities.tool import Place, Tool
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.decision import BEHAVIOUR
from longhaul.agent.decisions.call_verdicts import judge
from longhaul.agent.entries import Verdict
from longhaul.agent.fold.agent_state import AgentState, OpenCall
from longhaul.agent.fold.ledger import Provided
from longhaul.agent.permission.call_facts import CallFacts
from longhaul.agent.permission.rule_matching import ruled_folders, ruled_paths
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import ToolCallBlock
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec

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
        self._examination = Examination(Contexts(), toolbox, Workspaces(root), WorkerSecrets())
        self._record = Record(
            state=AgentState(
                session_id=AGENT, user_id=None, agent=AGENT, permission_context=permission, behaviour=BEHAVIOUR
            ),
            spec=AgentSpec(name=AGENT, permission=permission),
            provided=Provided(
                tools={tool.name: tool for tool in toolbox.descriptors(toolbox.names)}, workspace_root=str(root)
            ),
        )

    async def decide(self, tool: str, raw_input: str) -> Verdict:
        """What would be said of a call with these arguments, as the model writes them: JSON text. Never raises for
        what is wrong with them, nor for a tool that does not exist: then the verdict is `invalid`."""
        return self._judged(tool, raw_input, await self._examination.look(tool, raw_input, self._place))

    async def decide_on_any(self, tool: Tool) -> Verdict:
        """What would be said of a call whose arguments no rule speaks of, and that the tool itself finds nothing in."""
        return self._judged(tool.name, "{}", await tool.examine({}, self._place))

    def _judged(self, tool: str, raw_input: str, facts: CallFacts) -> Verdict:
        block = ToolCallBlock(id=AGENT, name=tool, input=raw_input)
        return judge(OpenCall(block=block, input=raw_input, facts=facts), self._record)
