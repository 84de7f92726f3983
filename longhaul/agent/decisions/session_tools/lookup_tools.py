"""Tools that the session answers itself for an agent with many tools: `find_tools` gives schemas of those that the
model has by name alone, and `call_tool` calls one. A call through `call_tool` comes here only where it names no tool
(`values.tool_index.direct`).
"""

from pydantic import Field

from longhaul.agent.decisions.session_tools.session_tool import InWorkflowTool, failed, reading, result_of
from longhaul.agent.entries import CallAnswered
from longhaul.agent.plain.text import parsed
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.tool_groups import hidden
from longhaul.agent.values.tool_index import CALL_TOOL, FIND_TOOLS, best_of, looked_up, names_text, schema_text

LONGEST_QUERY_CHARS = 1_000
MOST_NAMED = 12
"""Of what is found: the best come with their schemas, the others by name."""


class _Query(OpenValue):
    query: str = Field(min_length=1, max_length=LONGEST_QUERY_CHARS)


def _find(call: OpenCall, session: SessionState, wanted: _Query) -> CallAnswered:
    unseen = hidden(session.spec.tool_groups, session.state.tool_context.activated_groups)
    offered = [tool for name, tool in session.provided.tools.items() if name not in unseen]
    away = {*looked_up(offered)}
    best, others = best_of(wanted.query, [tool for tool in offered if tool.name in away], MOST_NAMED)
    if not best:
        return failed(call, f"no tool fits {wanted.query[:100]!r}; use words of the list in {FIND_TOOLS}, or a name")
    also = f"\n\nAlso, by name:\n{names_text(others)}" if others else ""
    text = f"Call these by {CALL_TOOL}, each with arguments that fit its schema:\n{schema_text(best)}{also}"
    return CallAnswered(result=result_of(call, text), found=tuple(tool.name for tool in best))


def _no_such_tool(call: OpenCall, session: SessionState) -> CallAnswered:
    name = (parsed(call.input) or {}).get("tool")
    if not isinstance(name, str):
        return failed(call, "tool: the name of a tool is missing")
    hint = f"; look it up by {FIND_TOOLS}" if FIND_TOOLS in session.provided.tools else ""
    return failed(call, f"tool: there is no tool {name[:100]!r} to call{hint}")


FIND_TOOL = InWorkflowTool(
    name=FIND_TOOLS,
    description=f"""\
Looks up tools that you have by name alone, and answers with what they do and the arguments that they take. Say what \
you want to do, or give names. Then call them by {CALL_TOOL}. What you have looked up need not be looked up again.""",
    input_schema={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_QUERY_CHARS,
                "description": "What the tool should do, in a few words; or names of tools.",
            }
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    answer=reading(_Query, _find),
)

CALL_BY_NAME = InWorkflowTool(
    name=CALL_TOOL,
    description=f"""\
Calls a tool that is not among yours at the beginning: one that {FIND_TOOLS} lists, or one that you were given later. \
Give the arguments that its schema asks for.""",
    input_schema={
        "type": "object",
        "properties": {
            "tool": {"type": "string", "description": "Its whole name."},
            "arguments": {"type": "object", "description": "As its input_schema says."},
        },
        "required": ["tool", "arguments"],
    },
    answer=_no_such_tool,
)
