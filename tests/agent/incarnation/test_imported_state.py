"""States from outside: our own exports of any version and AgentScope Java's, and what is said of the others."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhaul.agent.incarnation.imported_state import CURRENT, NewerRecord, NoRecord, known_version, read_state
from longhaul.agent.incarnation.java_state import from_java
from longhaul.agent.plain.errors import ImportProblem
from longhaul.agent.reducer.agent_state import AgentState, OpenCall, ReplyContext
from longhaul.agent.values.conversation.messages import AssistantMsg, ToolCallState, ToolResultState, UserMsg
from longhaul.agent.values.permission import PermissionRule

JAVA: dict[str, Any] = {
    "session_id": "sess-9",
    "user_id": "alice",
    "summary": "",
    "context": [
        {
            "id": "m-0", "name": "__compaction_summary__", "role": "USER", "metadata": {}, "usage": None,
            "timestamp": "2026-08-22 10:00:00.000", "content": [{"type": "text", "text": "Alice wants a report."}],
        },
        {
            "id": "m-1", "name": "alice", "role": "USER", "metadata": {"lang": "de"}, "usage": None,
            "timestamp": "2026-08-22 10:00:01.250",
            "content": [
                {"type": "text", "text": "Lies die Datei."},
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
                {"type": "data", "id": "d", "name": "a.pdf",
                 "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}},
            ],
        },
        {
            "id": "m-2", "name": "Bot", "role": "ASSISTANT", "timestamp": "2026-08-22 10:00:02.000",
            "metadata": {"agentscope_generate_reason": "TOOL_CALLS"},
            "usage": {"inputTokens": 120, "outputTokens": 9, "cachedTokens": 100, "time": 1.5, "totalTokens": 129},
            "content": [
                {"type": "thinking", "thinking": "Two files.", "metadata": None},
                {"type": "tool_use", "id": "c-1", "name": "read_file", "input": {"path": "ä.txt"}, "state": "finished",
                 "content": "{\"path\": \"ä.txt\"}", "metadata": {}},
                {"type": "tool_use", "id": "c-2", "name": "execute", "input": {}, "content": "{\"cmd\": \"ls",
                 "metadata": {}, "state": "finished"},
            ],
        },
        {
            "id": "m-3", "name": "Bot", "role": "TOOL", "metadata": {}, "timestamp": "2026-08-22 10:00:03.000",
            "content": [{"type": "tool_result", "id": "c-1", "name": "read_file", "state": "running",
                         "output": [{"type": "text", "text": "Inhalt"}], "metadata": {}, "suspended": False}],
        },
        {
            "id": "m-4", "name": "Bot", "role": "TOOL", "metadata": {}, "timestamp": "2026-08-22 10:00:03.000",
            "content": [{"type": "tool_result", "id": "c-2", "name": "execute", "state": "error",
                         "output": [{"type": "text", "text": "[ERROR] bad arguments"}], "metadata": {}}],
        },
    ],
    "reply_id": "0" * 32,
    "cur_iter": 0,
    "shutdown_interrupted": True,
    "permission_context": {
        "mode": "accept_edits",
        "working_directories": {"w": {"path": "/srv/work", "source": "user"}},
        "allow_rules": {"read_file": [{"tool_name": "read_file", "rule_content": None, "behavior": "allow",
                                       "source": "project"}]},
        "deny_rules": {"execute": [{"tool_name": "execute", "rule_content": "rm*", "behavior": "deny",
                                    "source": "project"}]},
        "ask_rules": {},
    },
    "tool_context": {"max_cache_files": 100, "max_cache_bytes": 25000.0, "activated_groups": ["files"],
                     "spawn_registry": {}},
    "tasks_context": {"tasks": []},
    "plan_mode_context": {"plan_active": False, "current_plan_file": None},
}  # fmt: skip


def changed(path: str, value: Any) -> dict[str, Any]:
    """JAVA with another value at a path of names and numbers."""
    document: dict[str, Any] = json.loads(json.dumps(JAVA))
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    place: Any = document
    for step in steps:
        place = place[step]
    place[last] = value
    return document


def problems(document: object) -> dict[str, str]:
    text = document if isinstance(document, str | bytes) else json.dumps(document)
    with pytest.raises(ImportProblem) as found:
        read_state(text)
    return dict(found.value.problems)


def test_a_state_of_agentscope_java_is_taken_over() -> None:
    state = read_state(json.dumps(JAVA, indent=2))

    assert (state.session_id, state.user_id, state.shutdown_interrupted) == ("sess-9", "alice", True)
    assert state.summary == "Alice wants a report."
    asked, turn, first, second = state.context
    assert [block.type for block in asked.content] == ["text", "data", "data"]
    assert (asked.created_at, asked.metadata) == ("2026-08-22T10:00:01.250+00:00", {"lang": "de"})
    assert turn.metadata == {}
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cache_input_tokens) == (120, 9, 100)
    assert [(call.id, call.input) for call in turn.get_tool_calls()] == [
        ("c-1", '{"path": "ä.txt"}'),
        ("c-2", '{"cmd": "ls'),
    ]
    assert first.get_tool_results()[0].state is ToolResultState.SUCCESS
    assert second.get_tool_results()[0].state is ToolResultState.ERROR
    assert [message.role for message in state.context] == ["user", "assistant", "assistant", "assistant"]
    assert state.permission_context.working_directories == ("/srv/work",)
    assert state.permission_context.mode == "accept_edits"
    assert state.permission_context.rules == (
        PermissionRule.model_validate(
            {"tool_name": "execute", "rule_content": "rm*", "behavior": "deny", "source": "project"}
        ),
        PermissionRule.model_validate({"tool_name": "read_file", "behavior": "allow", "source": "project"}),
    )
    assert state.tool_context.activated_groups == ("files",)


@pytest.mark.parametrize("user", [None, ""])
def test_a_blank_user_of_java_is_the_anonymous_one(user: str | None) -> None:
    assert read_state(json.dumps(changed("user_id", user))).user_id is None


def test_missing_fields_of_java_have_its_defaults() -> None:
    state = read_state('{"session_id": "old", "reply_id": "r"}')

    assert state == AgentState(session_id="old")


@pytest.mark.parametrize(
    ("state", "result", "said"),
    [
        ("asking", ToolResultState.INTERRUPTED, "did not run"),
        ("submitted", ToolResultState.INTERRUPTED, "handed to an outside system"),
        ("pending", ToolResultState.UNKNOWN, "May have run"),
        ("allowed", ToolResultState.UNKNOWN, "May have run"),
    ],
)
def test_an_open_call_of_java_gets_a_result_that_says_what_is_known(
    state: str, result: ToolResultState, said: str
) -> None:
    document = changed("context/2/content/2/state", state)
    del document["context"][4]

    closing = read_state(json.dumps(document)).context[-1].get_tool_results()[0]

    assert (closing.id, closing.state) == ("c-2", result)
    assert said.lower() in closing.get_text().lower()


def test_a_placeholder_for_a_result_leaves_the_call_open() -> None:
    document = changed("context/4/content/0/metadata", {"agentscope_suspended": True})

    closing = read_state(json.dumps(document)).context[-1].get_tool_results()[0]

    assert (closing.id, closing.state) == ("c-2", ToolResultState.UNKNOWN)


@pytest.mark.parametrize(
    ("path", "value", "where", "what"),
    [
        ("session_id", None, "session_id", "must be a string"),
        ("colour", "green", "colour", "is no field"),
        ("context", {}, "context", "must be a list"),
        ("context/1", "hello", "context[1]", "must be an object"),
        ("context/1/role", "KING", "context[1].role", "must be one of USER"),
        ("context/1/timestamp", "yesterday", "context[1].timestamp", "must be a time"),
        ("context/1/content/0/type", "poem", "context[1].content[0].type", "must be one of text"),
        ("context/1/content/0/type", ["text"], "context[1].content[0].type", "must be one of text"),
        ("context/1/content/2/source/data", None, "context[1].content[2].source.data", "must be a string"),
        ("context/1/content/1/source", {"type": "ftp"}, "context[1].content[1].source.type", "base64 or url"),
        ("context/2/content/1/id", "", "context[2].content[1].id", "must not be empty"),
        ("context/2/content/1/input", "x", "context[2].content[1].input", "must be an object"),
        ("context/2/content/1/state", {"a": 1}, "context[2].content[1].state", "must be one of"),
        ("context/3/content/0/state", ["x"], "context[3].content[0].state", "must be running or"),
        ("context/3/content/0/id", "c-9", "context", "message 2 holds a result for 'c-9'"),
        ("context/2/content/2/id", "c-1", "context", "uses the call id 'c-1' a second time"),
        ("permission_context/mode", "yolo", "permission_context.mode", "must be one of default"),
        (
            "permission_context/allow_rules/read_file/0/rule_content", "/etc/*",
            "permission_context.allow_rules.read_file[0]", "would allow calls here",
        ),
        (
            "permission_context/deny_rules/execute/0/behavior", "passthrough",
            "permission_context.deny_rules.execute[0].behavior", "must be 'deny'",
        ),
        ("tool_context/spawn_registry", {"k": {"agent_id": "x"}}, "tool_context.spawn_registry", "sub-agents"),
        ("tool_context/activated_groups", [3], "tool_context.activated_groups[0]", "must be a string, not 3"),
        ("shutdown_interrupted", "perhaps", "shutdown_interrupted", "valid boolean"),
    ],
)  # fmt: skip
def test_what_java_could_not_have_written_is_named_with_its_place(
    path: str, value: object, where: str, what: str
) -> None:
    assert what in problems(changed(path, value))[where]


def test_all_problems_are_named_at_once() -> None:
    document = changed("context/1/role", "KING") | {"colour": 1, "permission_context": {"mode": "yolo"}}

    assert set(problems(document)) == {"colour", "context[1].role", "permission_context.mode"}


def test_java_alone_leaves_calls_open() -> None:
    document = changed("context/2/content/2/state", "asking")
    del document["context"][4]

    assert [call.state for call in from_java(document).context[1].get_tool_calls()] == ["finished", "asking"]


def ours() -> AgentState:
    calls = [
        {"type": "tool_call", "id": "c-1", "name": "Bash", "input": "{}"},
        {"type": "tool_call", "id": "c-2", "name": "Bash", "input": "{}"},
    ]
    context = [UserMsg("ana", "hi"), AssistantMsg("reviewer", calls, id="r-1")]
    state = AgentState(session_id="s-1", user_id="ana", agent="reviewer", context=context)
    asking, allowed = (
        OpenCall(block=call, input="{}", state=how)
        for call, how in zip(context[1].get_tool_calls(), [ToolCallState.ASKING, ToolCallState.ALLOWED], strict=True)
    )
    state.reply_context = ReplyContext(reply_id="r-1", request_id="q-1", calls={"c-1": asking, "c-2": allowed})
    return state


def test_our_own_export_comes_back_with_nothing_open() -> None:
    state = read_state(ours().model_dump_json())

    assert state.reply_context is None
    assert state.context[:2] == ours().context
    results = [message.get_tool_results()[0] for message in state.context[2:]]
    assert [(result.id, result.state) for result in results] == [("c-1", "interrupted"), ("c-2", "unknown")]
    assert read_state(state.model_dump_json()) == state


def test_an_export_of_a_stored_session_is_read_too() -> None:
    journal = {"version": 1, "session_id": "s-1", "agent_id": "reviewer", "state": ours().model_dump(mode="json")}

    assert read_state(json.dumps(journal)) == read_state(ours().model_dump_json())


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "", "is no JSON"),
        (b"\xff\xfe\x00", "", "is no JSON"),
        ("[1]", "", "must be a JSON object"),
        ("[" * 100_000, "", "nests deeper than 100 levels"),
        ('{"session_id": "s", "a": NaN}', "", "NaN is no number"),
        ('{"session_id": "s", "session_id": "t"}', "", "field 'session_id' twice"),
        ('{"session_id": "s", "summary": "\\ud800"}', "summary", "half a surrogate pair"),
        ('{"session_id": "s", "context": [{"name": "a", "role": "user", "content": [{"type": "tool_call", "id": 3}]}]}',
         "context[0].content[0].id", "valid string"),
        ('{"session_id": "s", "context": [{"name": "a", "role": "cook", "content": "x"}]}', "context[0].role", "Input"),
        ('{"version": 1, "state": {"summary": 1}}', "state.summary", "valid string"),
        ('{"version": 99, "state": {}}', "version", "newer Longhaul"),
        ('{"version": "one", "state": {}}', "version", "whole number"),
        ('{"version": true}', "version", "whole number"),
        ('{"state": {"session_id": "s"}}', "version", "whole number"),
        ('{"summary": "x"}', "session_id", "required"),
        (b" " * 16_000_001, "", "16,000,001 bytes"),
    ],
)  # fmt: skip
def test_what_is_no_state_is_refused_with_its_place(text: str | bytes, where: str, what: str) -> None:
    assert what in problems(text)[where]


def test_a_record_of_this_version_is_taken_as_it_is() -> None:
    journal = {"version": CURRENT, "session_id": "s-1", "colour": "green"}

    assert known_version(journal) == {"version": CURRENT, "session_id": "s-1", "colour": "green"}


def test_a_newer_record_is_never_guessed_at() -> None:
    with pytest.raises(NewerRecord, match=r"version: 2 was written by a newer Longhaul; this one reads up to 1\. Run"):
        known_version({"version": 2, "session_id": "s-1"})


@pytest.mark.parametrize(
    "stored", [None, [], "x", 3, {"session_id": "s-1"}, {"version": 0}, {"version": "1"}, {"version": True}]
)
def test_what_is_no_record_is_said_to_be_none(stored: object) -> None:
    with pytest.raises(NoRecord):
        known_version(stored)


def test_deep_nesting_below_the_parsers_own_limit_is_refused() -> None:
    deep = '{"session_id": "s", "x": ' + "[" * 150 + "]" * 150 + "}"

    assert "nests deeper than 100 levels" in str(problems(deep))


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*JAVA, "role", "content", "type", "state", "id"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(ANY_JSON)
def test_any_document_is_read_or_refused(document: object) -> None:
    for candidate in (document, JAVA | {"context": document}, JAVA | {"permission_context": document}):
        try:
            state = read_state(json.dumps(candidate))
        except ImportProblem:
            continue
        assert AgentState.model_validate_json(state.model_dump_json()) == state
