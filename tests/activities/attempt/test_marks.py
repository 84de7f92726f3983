"""Marks stand for secrets in the arguments of calls: in whatever way they were written, and back again for the tool."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.bash import Bash
from longhaul.activities.tools.file_changes import Write
from longhaul.activities.tools.registry import Toolbox, checked
from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse, SubCommand
from longhaul.agent.values.conversation.messages import Msg, TextBlock, ToolCallBlock
from tests.activities.tools.calls import place_at

KEY = 'gate "41"\\sésame/+7'
SECRETS = WorkerSecrets({"GATE_KEY": KEY, "OTHER": "a door of oak"}, {"OPENAI_API_KEY": "sk-heather-72"})
MARK = "[secret GATE_KEY]"

PLAIN = {
    "as it is": json.dumps({"command": f"open '{KEY}'"}, ensure_ascii=False),
    "escaped": json.dumps({"command": f"open '{KEY}'"}),
    "each operation escaped": '{"command": "open \'' + "".join(f"\\u{ord(char):04x}" for char in KEY) + "'\"}",
    "nested": json.dumps({"in": [{"deep": {"key": KEY}}]}),
    "a name": json.dumps({KEY: 1}),
}
OTHERWISE = {
    "in capitals": json.dumps({"command": KEY.upper()}),
    "base64": json.dumps({"command": base64.b64encode(f"ana:{KEY}".encode()).decode()}),
    "in a URL": json.dumps({"url": f"https://gate.example/?key={quote(KEY, safe='')}"}),
    "JSON in JSON": json.dumps({"body": json.dumps({"key": KEY})}),
    "broken JSON": json.dumps({"command": KEY})[:-1],
    "a name twice": f'{{"a": {json.dumps(KEY)}, "a": 1}}',
    "no JSON": KEY,
}


@pytest.mark.parametrize("arguments", [*PLAIN.values(), *OTHERWISE.values()], ids=[*PLAIN, *OTHERWISE])
def test_nothing_of_a_secret_is_in_what_is_shown_of_a_call(arguments: str) -> None:
    for shown in (SECRETS.marked(arguments), SECRETS.kept(arguments)):
        assert SECRETS.masker.found(shown) == ""
        assert MARK in shown


@pytest.mark.parametrize("arguments", PLAIN.values(), ids=PLAIN)
def test_a_tool_that_is_given_the_secret_gets_what_was_written(arguments: str) -> None:
    kept = SECRETS.kept(arguments)

    assert json.loads(SECRETS.filled(kept, ["GATE_KEY"])) == json.loads(arguments)
    assert json.loads(kept) != json.loads(arguments)


@pytest.mark.parametrize("arguments", OTHERWISE.values(), ids=OTHERWISE)
def test_what_can_not_be_put_back_as_it_was_is_no_json(arguments: str) -> None:
    toolbox = Toolbox([Bash()])

    with pytest.raises(ArgumentsError, match="a secret that is not written as it is"):
        checked(toolbox, SECRETS, "Bash", SECRETS.kept(arguments))


def test_who_is_not_given_the_secret_gets_the_mark() -> None:
    kept = SECRETS.kept(json.dumps({"keys": [KEY, "a door of oak", "sk-heather-72"]}))

    filled = json.loads(SECRETS.filled(kept, ["OTHER", "OPENAI_API_KEY"]))

    assert filled == {"keys": [MARK, "a door of oak", "[secret OPENAI_API_KEY]"]}


def test_arguments_without_a_secret_stay_to_the_letter() -> None:
    arguments = '{ "command" : "\\u0065cho [secret GATE_KE]" }'

    assert SECRETS.marked(arguments) == SECRETS.kept(arguments) == SECRETS.filled(arguments, ["GATE_KEY"]) == arguments


def test_half_of_a_surrogate_pair_stays_what_it_is() -> None:
    shown = SECRETS.marked(json.dumps({"half": "\ud83d", "key": KEY}))

    assert json.loads(shown) == {"half": "\ud83d", "key": MARK}
    shown.encode()


@pytest.mark.parametrize("length", range(60, 140, 3))
def test_what_is_wrong_with_arguments_is_said_without_half_a_secret(length: int) -> None:
    toolbox = Toolbox([Write()])
    for arguments in (
        json.dumps({"file_path": ["x" * length + KEY]}),
        json.dumps({"file_path": "a", "content": f"{'x' * length}{KEY}"}, ensure_ascii=False)[: length + 50],
        f'{{"file_path": {"x" * length}{KEY}',
    ):
        with pytest.raises(ArgumentsError) as wrong:
            checked(toolbox, SECRETS, "Write", arguments)
        said = str(wrong.value)
        assert not any(KEY[at : at + 6] in said for at in range(len(KEY) - 5))


def test_findings_about_such_a_call_hold_nothing_of_it_and_rules_are_told_that_they_could_not_see() -> None:
    analysis = CallAnalysis(
        cwd="/w",
        commands=(SubCommand(words=("open", KEY)), SubCommand(words=("echo", "a", "door", "of", "oak"))),
        paths=(PathUse(path=f"/w/{KEY}", named=(f"/v/{KEY}",), danger=f"{KEY} is odd", access="write"),),
        mentioned=((f"/w/{KEY}",),),
        after="5d41402abc4b2a76b9719d911017c592",
    )

    shown = SECRETS.out_of_findings(analysis, json.dumps({"command": f"open {KEY}; echo a door of oak"}))

    assert SECRETS.masker.found(shown.model_dump_json()) == ""
    assert "oak" not in shown.model_dump_json()
    assert shown.not_understood in ("the value of the secret GATE_KEY", "the value of the secret OTHER")
    assert shown.after == ""
    assert SECRETS.out_of_findings(analysis, '{"command": "ls"}') == analysis


async def test_a_line_of_a_change_that_is_cut_ends_before_half_a_secret(tmp_path: Path) -> None:
    for length in range(360, 420, 3):
        place = place_at(tmp_path)
        analysis = await Write().examine({"file_path": "kept", "content": f"{'x' * length}{KEY}{'y' * 200}"}, place)

        shown = SECRETS.out_of_analysis(analysis).notice

        assert "more characters)" in shown
        assert not any(KEY[at : at + 4] in shown for at in range(len(KEY) - 3)), length


def test_a_persons_message_is_marked_and_measured_again() -> None:
    came = Msg(
        name="ana",
        role="user",
        content=(
            TextBlock(text=f"Open it with {KEY}."),
            ToolCallBlock(id="a", name="Bash", input=json.dumps({"command": KEY})),
        ),
        id="m1",
    )
    long = came.text_length

    shown = SECRETS.out_of_message(came)

    assert shown.content[0] == TextBlock(text=f"Open it with {MARK}.")
    assert SECRETS.masker.found(shown.model_dump_json()) == ""
    assert (shown.id, shown.text_length != long) == ("m1", True)
    assert SECRETS.out_of_message(shown) is shown
