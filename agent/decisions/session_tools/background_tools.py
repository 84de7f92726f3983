"""`KillShell`: stops a command in the background."""

from longhaul.agent.decisions.session_tools.session_tool import InsideTool, failed, reading, told
from longhaul.agent.entries.all_entries import CallAnswered
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.plain.nearest import did_you_mean
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values.background import KILL_SHELL


class _Named(OpenValue):
    shell_id: str


def _kill(call: OpenCall, ledger: Ledger, wanted: _Named) -> CallAnswered:
    named = wanted.shell_id
    command = ledger.commands.get(named)
    if command is None:
        at_work = [one.call_id for one in ledger.commands.values() if not one.fate]
        known = did_you_mean(named, at_work)
        return failed(call, f"shell_id: there is no command {named[:100]!r} in the background; {known}")
    if command.fate or command.unwanted:
        return failed(call, f"shell_id: {named!r} does not run any more ({command.fate or 'told to stop'})")
    text = f"{named!r} is told to stop, with all that it has started. What it had printed comes as a message."
    return CallAnswered(result=told(call, text), unwanted=(named,))


KILL_TOOL = InsideTool(
    name=KILL_SHELL,
    description="Stops a command that runs in the background, with all that it has started.",
    input_schema={
        "type": "object",
        "properties": {"shell_id": {"type": "string", "description": "As Bash has answered it."}},
        "required": ["shell_id"],
        "additionalProperties": False,
    },
    answer=reading(_Named, _kill),
)
