"""`Agent`: gives a task to a sub-agent.

The session starts it (`agent.decisions.subagent_start`); no worker runs one.
"""

from typing import Any

from longhaul.activities.tool import Tool
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.subagents import AGENT, LONGEST_TASK_CHARS


class StartAgent(Tool):
    """Starting one changes nothing by itself: what a sub-agent does is decided call by call, in its own session."""

    name = AGENT
    description = """\
Gives a task to another agent, which works on it in a session of its own, and answers with its last message.

- It sees nothing of this conversation: say all that it has to know, and what its answer should contain.
- Calls of one turn work side by side, in the same folder.
- With run_in_background the call answers at once, and the last message comes by itself when it is ready."""
    input_schema: dict[str, Any] = {  # noqa: RUF012  as every tool says its schema
        "type": "object",
        "properties": {
            "agent": {"type": "string", "description": "Name of the agent."},
            "task": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_TASK_CHARS,
                "description": "The whole task, in words that need no other context.",
            },
            "answer_schema": {
                "type": "object",
                "description": "JSON schema of an object. With it the answer is a value that fits, as JSON, not words.",
            },
            "run_in_background": {
                "type": "boolean",
                "description": "Do not wait for it. AgentList, AgentSend and AgentStop are for such ones.",
            },
        },
        "required": ["agent", "task"],
        "additionalProperties": False,
    }
    effect = Effect.READ
    read_only = True
    concurrency_safe = True
    child = True
