"""Tools that the session answers itself: from a call and the record to an entry, without a worker.

What a call changes stands in its entry. Workers know these tools by description alone, to tell the model of them and to
check what it hands them.
"""

from longhaul.agent.entries.every import CallAnswered, SleepBegun
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.fold.ledger.state import OpenCall
from longhaul.agent.next import inside_notebook, inside_notebook_subtasks
from longhaul.agent.next.inside_agents import LIST_TOOL, SEND_TOOL, STOP_TOOL
from longhaul.agent.next.inside_background import KILL_TOOL
from longhaul.agent.next.inside_groups import RESET_TOOL
from longhaul.agent.next.inside_plan_mode import PLAN_ENTER_TOOL, PLAN_EXIT_TOOL
from longhaul.agent.next.inside_sleep import SLEEP_TOOL, WAIT_FOR_TOOL
from longhaul.agent.next.inside_tasks import TODO_WRITE
from longhaul.agent.next.inside_tool import InsideTool
from longhaul.agent.next.structured_output import answered
from longhaul.agent.values.conversation.structured_output import GENERATE_RESPONSE

_TOOLS = (TODO_WRITE, PLAN_ENTER_TOOL, PLAN_EXIT_TOOL, RESET_TOOL, SLEEP_TOOL, WAIT_FOR_TOOL)
_AGENTS = (LIST_TOOL, SEND_TOOL, STOP_TOOL, KILL_TOOL)
_NOTEBOOK = (
    inside_notebook.CREATE,
    inside_notebook_subtasks.REVISE,
    inside_notebook_subtasks.UPDATE,
    inside_notebook_subtasks.FINISH,
    inside_notebook_subtasks.VIEW,
    inside_notebook.FINISH,
    inside_notebook.VIEW_HISTORY,
    inside_notebook.RECOVER,
)
INSIDE: dict[str, InsideTool] = {tool.name: tool for tool in (*_AGENTS, *_TOOLS, *_NOTEBOOK)}


def answer(call: OpenCall, ledger: Ledger) -> CallAnswered | SleepBegun:
    """The entry for an allowed call of one of these tools."""
    if call.block.name == GENERATE_RESPONSE:
        return answered(call, ledger)
    return INSIDE[call.block.name].answer(call, ledger)
