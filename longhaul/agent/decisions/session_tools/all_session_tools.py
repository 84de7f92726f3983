"""Tools that the session answers itself: from a call and the journal to an entry, without a worker.

What a call changes stands in its entry. Workers know these tools by description alone, to tell the model of them and to
check what it hands them.
"""

from longhaul.agent.decisions.session_tools import notebook_tools
from longhaul.agent.decisions.session_tools.lookup_tools import CALL_BY_NAME, FIND_TOOL
from longhaul.agent.decisions.session_tools.plan_tools import PLAN_ENTER_TOOL, PLAN_EXIT_TOOL, RESET_TOOL, TODO_WRITE
from longhaul.agent.decisions.session_tools.session_tool import InWorkflowTool
from longhaul.agent.decisions.session_tools.waiting_tools import (
    KILL_TOOL,
    LIST_TOOL,
    SEND_TOOL,
    SLEEP_TOOL,
    STOP_TOOL,
    WAIT_FOR_TOOL,
)
from longhaul.agent.decisions.structured_output import answered
from longhaul.agent.entries import CallAnswered, SleepStarted
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE

_TOOLS = (TODO_WRITE, PLAN_ENTER_TOOL, PLAN_EXIT_TOOL, RESET_TOOL, SLEEP_TOOL, WAIT_FOR_TOOL)
_AGENTS = (LIST_TOOL, SEND_TOOL, STOP_TOOL, KILL_TOOL)
_NOTEBOOK = (
    notebook_tools.CREATE,
    notebook_tools.REVISE,
    notebook_tools.UPDATE,
    notebook_tools.FINISH_SUBTASK,
    notebook_tools.VIEW,
    notebook_tools.FINISH_PLAN,
    notebook_tools.VIEW_HISTORY,
    notebook_tools.RECOVER,
)
_LOOKUP = (FIND_TOOL, CALL_BY_NAME)
INSIDE: dict[str, InWorkflowTool] = {tool.name: tool for tool in (*_AGENTS, *_TOOLS, *_NOTEBOOK, *_LOOKUP)}


def answer(call: OpenCall, session: SessionState) -> CallAnswered | SleepStarted:
    """The entry for an allowed call of one of these tools."""
    if call.block.name == GENERATE_RESPONSE:
        return answered(call, session)
    return INSIDE[call.block.name].answer(call, session)
