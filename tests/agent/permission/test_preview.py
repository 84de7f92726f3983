"""What a person is shown of a call: the real arguments, with their end, whatever the model wrote."""

import json

from hypothesis import given
from hypothesis import strategies as st

from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse, SubCommand
from longhaul.agent.permission.preview import Part, argument_parts, at_length, brief, preview
from longhaul.agent.values.conversation.tools import Effect

END = "; rm -rf ~/keepsakes"


def only(arguments: object) -> Part:
    (part,) = argument_parts(json.dumps(arguments))
    return part


def test_a_command_is_shown_as_it_is() -> None:
    assert only({"command": "git add x && make"}) == Part(name="command", text="git add x && make")


def test_the_end_of_a_long_line_is_never_hidden() -> None:
    part = only({"command": "ls #" + "x" * 100_000 + END})

    assert part.text.startswith("ls #xxx")
    assert part.text.endswith(END)
    assert f"⟨{part.left_out} characters are not shown here⟩" in part.text
    assert len(part.text) < 4_100


def test_the_end_of_many_lines_is_never_hidden() -> None:
    part = only({"command": "ls\n" + "echo tea\n" * 900 + END})

    assert part.text.startswith("ls\necho tea\n")
    assert part.text.endswith("\n" + END)
    assert part.text.count("\n") < 63
    assert part.left_out > 7_000


def test_what_stands_behind_blanks_stays_on_the_screen() -> None:
    assert only({"command": "ls" + " " * 300 + END}).text == "ls⟨300 blanks⟩" + END
    assert only({"command": "ls" + "\n" * 300 + END}).text == "ls\n⟨300 empty lines⟩\n" + END


def test_all_of_it_can_be_had() -> None:
    command = "ls #" + "x" * 9_000 + "\u202e" + " " * 90 + END

    (part,) = argument_parts(json.dumps({"command": command}), whole=True)

    assert part.text == command.replace("\u202e", "⟨U+202E⟩")
    assert part.left_out == 0


def test_no_mark_is_cut_in_two() -> None:
    part = only({"command": "\u202e" * 20_000})

    head, _, tail = part.text.partition(f"⟨{part.left_out} characters are not shown here⟩")
    assert set(head.split("⟩")) == {"⟨U+202E", ""}
    assert set(tail.split("⟩")) == {"⟨U+202E", ""}


def test_an_argument_that_hides_among_many_is_counted() -> None:
    parts = argument_parts(json.dumps({f"a{number}": number for number in range(500)}))

    assert 0 < len(parts) <= 31
    assert parts[-1] == Part(name="a499", text="499")
    assert any(part.name == "⟨470 more arguments⟩" for part in parts)


def test_what_is_no_object_is_shown_as_it_came() -> None:
    assert argument_parts('{"command": "ls\x1b') == (Part(name="arguments", text='{"command": "ls⟨U+001B⟩'),)
    assert argument_parts("{}") == (Part(name="arguments", text="{}"),)


def test_values_that_nest_deeply_are_shown_on_one_line() -> None:
    deep = '{"a": ' + "[" * 900 + "]" * 900 + "}"

    (part,) = argument_parts(deep)

    assert part.text == "[" * 900 + "]" * 900


def test_a_name_can_not_pose_as_another_argument() -> None:
    assert only({"a\ncommand": "x"}).name == "a⟨U+000A⟩command"


def test_findings_say_where_it_works_and_what_is_dangerous() -> None:
    analysis = CallAnalysis(
        cwd="/site",
        paths=(
            PathUse(path="/site/a\nread /etc", access="write", inside=True),
            PathUse(path="/home/ana/.netrc", danger="it holds passwords"),
        ),
        safety="it formats a disk",
        not_understood="a here-document",
        notice="--- a\n+++ a\n-old\n+new",
    )

    shown = preview("{}", analysis, Effect.ONCE)

    assert shown.effect.startswith("runs at most once")
    assert shown.cwd == "/site"
    assert [(part.name, part.text) for part in shown.findings] == [
        ("warning", "it contains a here-document, which can't be judged without running it"),
        ("warning", "it is dangerous: it formats a disk"),
        (
            "touches",
            "write /site/a⟨U+000A⟩read /etc\nread /home/ana/.netrc (outside the workspace): it holds passwords",
        ),
        ("change", "--- a\n+++ a\n-old\n+new"),
    ]


def test_of_many_paths_the_last_ones_are_shown_too() -> None:
    analysis = CallAnalysis(paths=tuple(PathUse(path=f"/site/{number}", inside=True) for number in range(3_000)))

    (touched,) = preview("{}", analysis, Effect.ONCE).findings

    assert touched.text.endswith("read /site/2999")
    assert "⟨2940 more paths⟩" in touched.text


def test_one_line_keeps_its_end() -> None:
    assert brief("x" * 500 + "\nrm", 60).endswith("⟨U+000A⟩rm")


@given(st.text(max_size=300), st.integers(10, 80))
def test_one_line_is_always_one_line(text: str, chars: int) -> None:
    assert "\n" not in brief(text, chars)


def test_what_the_session_answers_itself_is_labelled_by_what_follows() -> None:
    ended, read = (preview("{}", CallAnalysis(), Effect.READ, tool).effect for tool in ("plan_exit", ""))

    assert ended == "ends plan mode: from then on calls may change things, as the session's mode and rules let them"
    assert read == "only reads: it changes nothing"


def test_at_length_it_has_its_risk_and_each_of_its_commands() -> None:
    analysis = CallAnalysis(
        risk="high",
        risk_reason="it\nsends",
        boundary="proven",
        commands=(
            SubCommand(words=("cat", "a\nb"), read_only=True),
            SubCommand(words=(">", "/site/c"), edits_only=True),
            SubCommand(words=("curl\u202e", "x")),
        ),
    )
    risk, *_, commands = at_length(preview("{}", analysis, Effect.ONCE), analysis, has_network=False).findings
    confined = analysis.model_copy(update={"boundary": "all"})
    *_, held = at_length(preview("{}", confined, Effect.ONCE), confined, has_network=False).findings
    *_, reaches = at_length(preview("{}", confined, Effect.ONCE), confined, has_network=True).findings

    assert (risk.name, risk.text) == ("risk", "high: it⟨U+000A⟩sends")
    assert commands.text.splitlines() == [
        "cat a⟨U+000A⟩b: proven to only read",
        "> /site/c: proven to change only what it names",
        "curl⟨U+202E⟩ x: not proven; it may reach the network",
    ]
    assert held.text.splitlines()[-1] == "curl⟨U+202E⟩ x: not proven"
    assert reaches.text == commands.text


def test_of_many_commands_the_last_ones_are_counted_in() -> None:
    analysis = CallAnalysis(commands=tuple(SubCommand(words=("echo", str(number))) for number in range(3_000)))

    (shown,) = at_length(preview("{}", analysis, Effect.ONCE), analysis, has_network=True).findings

    assert shown.text.endswith("echo 2999: not proven; it may reach the network")
    assert "⟨2940 more commands⟩" in shown.text


def test_what_has_nothing_more_to_tell_stays_as_it_is() -> None:
    seen = preview("{}", CallAnalysis(), Effect.READ)

    assert at_length(seen, CallAnalysis(), has_network=True) == seen
