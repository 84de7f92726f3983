"""The decision on a call without a session: the same looking and the same judging, and then nothing is run."""

from pathlib import Path

from activities.contexts import Contexts
from activities.examine import Examination
from activities.tools.registry import Toolbox
from activities.tools.tool import Place
from activities.workspaces import Workspaces
from agent.decision import BEHAVIOUR
from agent.entries import Verdict
from agent.judgement import judge
from agent.messages import ToolCallBlock
from agent.permission.ruled import ruled_folders
from agent.permission.rules import PermissionContext
from agent.record import Record
from agent.settings import AgentSpec
from agent.state import AgentState, OpenCall

AGENT = "rehearsal"


class Rehearsal:
    """Decides on calls as a session with these tools, this permission and this workspace would before its first call.

    `root` is the workspace: a directory, absolute and resolved. It is not marked as a workspace, nor changed.
    """

    def __init__(self, toolbox: Toolbox, permission: PermissionContext, root: Path) -> None:
        self._place = Place(root=root, cwd=root, ruled=ruled_folders(permission, str(root)))
        self._examination = Examination(Contexts(), toolbox, Workspaces(root))
        self._record = Record(
            state=AgentState(
                session_id=AGENT, user_id=None, agent=AGENT, permission_context=permission, behaviour=BEHAVIOUR
            ),
            spec=AgentSpec(name=AGENT, permission=permission),
            tools={tool.name: tool for tool in toolbox.descriptors(toolbox.names)},
            workspace_root=str(root),
        )

    async def decide(self, tool: str, raw_input: str) -> Verdict:
        """What would be said of a call with these arguments, as the model writes them: JSON text. Never raises for
        what is wrong with them, nor for a tool that does not exist: then the verdict is `invalid`."""
        block = ToolCallBlock(id=AGENT, name=tool, input=raw_input)
        facts = await self._examination.look(tool, raw_input, self._place)
        return judge(OpenCall(block=block, input=raw_input, facts=facts), self._record)
