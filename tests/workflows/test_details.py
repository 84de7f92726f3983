"""The page that Temporal's Web UI shows of a session: what it waits for and how to answer."""

from agent.messages import ErrorInfo
from tests.agent.play import Play, calls, text
from workflows.details import details


def asked(play: Play) -> list[str]:
    """The lines of the page after one request."""
    play.say("Build it")
    play.run()
    return details(play.record).split("  \n")


def test_a_call_that_waits_for_a_person_comes_with_the_commands_that_answer_it() -> None:
    lines = asked(Play([calls("c-1 Paint", arguments='{"colour": "red"}')]))

    assert lines[0].startswith("**waiting** · agent `mason` · 1 model call · ")
    assert lines[1] == 'for a person since 2025-11-25 12:00 UTC: `Paint` `{"colour": "red"}`'
    assert lines[2:4] == [
        "`longhaul approve wall-7 c-1 --user ana --agent mason`",
        "`longhaul deny wall-7 c-1 --reason TEXT --user ana --agent mason`",
    ]
    assert lines[4].startswith("why: `")


def test_a_call_that_waits_for_the_outside_is_answered_by_its_result() -> None:
    lines = asked(Play([calls("c-2 Order", arguments="{}")]))

    assert lines[1] == "for an outside system since 2025-11-25 12:00 UTC: `Order` `{}`"
    assert lines[2] == "`longhaul result wall-7 c-2 --output TEXT --user ana --agent mason`"


def test_what_the_model_wrote_stays_inside_its_code() -> None:
    lines = asked(Play([calls("c-1 Paint", arguments='{"a": "`**approved**`\\u202e [x](http://y)"}\n# done')]))

    assert '`` {"a": "`**approved**`\\u202e [x](http://y)"}⟨U+000A⟩# done ``' in lines[1]


def test_arguments_without_end_keep_theirs() -> None:
    lines = asked(Play([calls("c-1 Paint", arguments='{"a": "' + "x" * 500 + '"}')]))

    assert "x⟨350 characters are not shown here⟩x" in lines[1]
    assert lines[1].endswith('x"}`')
    assert len(lines[1]) < 250


def test_an_idle_session_says_why_its_last_reply_failed() -> None:
    lines = asked(Play([ErrorInfo(type="auth", message="the key is wrong")]))

    assert lines[0].startswith("**idle** · agent `mason` · ")
    assert lines[1] == "the last reply failed: `the key is wrong`"


def test_after_an_answer_nothing_but_the_head_stands_there() -> None:
    assert len(asked(Play([text("Built.")]))) == 1
