"""`RunProgram`: the sub-agent that it starts has what its session has, and nothing that its session answers itself."""

import json

from longhaul.agent.decisions.subagent_start import beginning
from longhaul.agent.values.conversation.messages import ContentBlock, ToolCallBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.agent.values.spec.agent_spec import Secrets
from longhaul.agent.values.spec.mcp import MCPClient
from tests.agent.family import AGENT_TOOL, HOUSE, Family, tasks
from tests.agent.play import SPEC, TOOLS, text

RUN = ToolDescriptor(name="RunProgram", child=True, read_only=True, concurrency_safe=True, effect=Effect.READ)
TODO = ToolDescriptor(name="todo_write", inside=True, read_only=True, effect=Effect.READ)
PROGRAM = "for wall in range(3): Paint(wall=wall)"


def runs(call_id: str, program: str = PROGRAM) -> list[ContentBlock]:
    return [ToolCallBlock(id=call_id, name="RunProgram", input=json.dumps({"program": program}))]


def playing(*lines: list[ContentBlock], **spec: object) -> Family:
    house = HOUSE.model_copy(update={"tools": ("RunProgram", "todo_write", *SPEC.tools), **spec})
    play = Family([*lines, text("All set.")], spec=house, tools=(*TOOLS, AGENT_TOOL, RUN, TODO), starting=True)
    play.say("Build")
    play.run(hold=True)
    return play


def test_it_has_the_tools_rules_and_servers_of_its_session_and_no_model() -> None:
    allow = PermissionRule(tool_name="Paint", behavior=Behavior.ALLOW)
    deny = PermissionRule(tool_name="Demolish", behavior=Behavior.DENY)
    play = playing(
        runs("a"),
        permission=SPEC.permission.model_copy(update={"rules": (allow, deny)}),
        mcps=(MCPClient(name="shop"),),
        secrets=Secrets(allow=("KEY",)),
    )

    child, parent, spec, request = beginning(play.journal, play.journal.current.calls["a"], "w")

    assert (child.agent, spec.name, spec.custom_agent) == ("program", "program", "program")
    assert set(spec.tools) == set(SPEC.tools) - {"Agent"}, "no sub-agents, and nothing that the session answers"
    assert [rule.tool_name for rule in spec.permission.rules] == ["Demolish", "Paint"]
    assert (spec.mcps, spec.secrets, spec.agents) == ((MCPClient(name="shop"),), Secrets(allow=("KEY",)), {})
    assert [message.get_text_content() for message in request.messages] == [PROGRAM]
    assert parent.path == (HOUSE.name,)
    assert (spec.react_config.max_iters, spec.context_config.tool_result_limit) == (1_000, 100_000)


def test_one_without_a_program_is_not_started() -> None:
    play = playing(runs("a", ""))

    (refused,) = play.results()
    assert refused[1] == "error"
    assert "program" in refused[2]


def test_it_counts_as_one_of_the_agents_that_a_reply_may_start() -> None:
    play = playing([*tasks("a glazier", "b tiler"), *runs("c"), *runs("d")])

    (refused,) = play.results()
    assert refused[:2] == ("d", "error")
    assert "as many sub-agents as it may, and that is 3" in refused[2]
