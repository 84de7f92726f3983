"""Tools that the session answers itself: from a call and the record to an entry, without a worker.

What a call changes stands in its entry. Workers know these tools by description alone, to tell the model of them and to
check what it hands them.
"""

from agent.entries import CallAnswered
from agent.inside_groups import RESET_TOOL
from agent.inside_plan import PLAN_ENTER_TOOL, PLAN_EXIT_TOOL
from agent.inside_tasks import TODO_WRITE
from agent.inside_tool import InsideTool
from agent.ledger import Ledger
from agent.state import OpenCall

INSIDE: dict[str, InsideTool] = {tool.name: tool for tool in (TODO_WRITE, PLAN_ENTER_TOOL, PLAN_EXIT_TOOL, RESET_TOOL)}


def answer(call: OpenCall, ledger: Ledger) -> CallAnswered:
    """The entry for an allowed call of one of these tools."""
    return INSIDE[call.block.name].answer(call, ledger)
