"""Tools that the session answers itself: from a call and the record to an entry, without a worker.

What a call changes stands in its entry. Workers know these tools by description alone, to tell the model of them and to
check what it hands them.
"""

from longhaul.agent.decisions.session_tools import notebook_subtask_tools, notebook_tools
from longhaul.agent.decisions.session_tools.background_tools import KILL_TOOL
from longhaul.agent.decisions.session_tools.plan_mode_tools import PLAN_ENTER_TOOL, PLAN_EXIT_TOOL
from longhaul.agent.decisions.session_tools.session_tool import InsideTool
from longhaul.agent.decisions.session_tools.sleep_tools import SLEEP_TOOL, WAIT_FOR_TOOL
from longhaul.agent.decisions.session_tools.subagent_tools import LIST_TOOL, SEND_TOOL, STOP_TOOL
from longhaul.agent.decisions.session_tools.todo_tool import TODO_WRITE
from longhaul.agent.decisions.session_tools.tool_group_tools import RESET_TOOL
from longhaul.agent.decisions.structured_output import answered
from longhaul.agent.entries.all_entries import CallAnswered, SleepBegun
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.values.conversation.structured_output import GENERATE_RESPONSE

_TOOLS = (TODO_WRITE, PLAN_ENTER_TOOL, PLAN_EXIT_TOOL, RESET_TOOL, SLEEP_TOOL, WAIT_FOR_TOOL)
_AGENTS = (LIST_TOOL, SEND_TOOL, STOP_TOOL, KILL_TOOL)
_NOTEBOOK = (
    notebook_tools.CREATE,
    notebook_subtask_tools.REVISE,
    notebook_subtask_tools.UPDATE,
    notebook_subtask_tools.FINISH,
    notebook_subtask_tools.VIEW,
    notebook_tools.FINISH,
    notebook_tools.VIEW_HISTORY,
    notebook_tools.RECOVER,
)
INSIDE: dict[str, InsideTool] = {tool.name: tool for tool in (*_AGENTS, *_TOOLS, *_NOTEBOOK)}


def answer(call: OpenCall, ledger: Ledger) -> CallAnswered | SleepBegun:
    """The entry for an allowed call of one of these tools."""
    if call.block.name == GENERATE_RESPONSE:
        return answered(call, ledger)
    return INSIDE[call.block.name].answer(call, ledger)
