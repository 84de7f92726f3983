"""The page that Temporal's Web UI shows of a session: what it waits for and how to answer."""

import json
from typing import Any

from longhaul.agent.steps import Think
from longhaul.agent.values.conversation.messages import ErrorInfo
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.deadlines import Deadlines
from longhaul.agent.values.permission import PermissionContext
from longhaul.workflows.web_ui import details
from tests.agent.family import ABOVE, Family, tasks
from tests.agent.play import NOON, RULES, SPEC, TOOLS, Play, asking, calls, text


def asked(play: Play) -> list[str]:
    """The lines of the page after one request."""
    play.say("Build it")
    play.run()
    return details(play.journal).split("  \n")


def test_a_call_that_waits_for_a_person_comes_with_the_commands_that_answer_it() -> None:
    lines = asked(Play([calls("c-1 Paint", arguments='{"colour": "red"}')]))

    assert lines[0].startswith("**waiting** for 1 approval · agent `mason` · 1 model call · ")
    assert lines[1] == 'for a person since 2025-11-25 12:00 UTC: `Paint` `{"colour": "red"}`'
    assert lines[2:4] == [
        "`longhaul approve wall-7 c-1 --user ana --agent mason`",
        "`longhaul deny wall-7 c-1 --reason TEXT --user ana --agent mason`",
    ]
    assert lines[4].startswith("why: `")


def test_a_call_that_waits_for_the_outside_is_answered_by_its_result() -> None:
    lines = asked(Play([calls("c-2 Order", arguments="{}")]))

    assert lines[1] == "for an external system since 2025-11-25 12:00 UTC: `Order` `{}`"
    assert lines[2] == "`longhaul result wall-7 c-2 --output TEXT --user ana --agent mason`"


def test_the_head_counts_what_is_waited_for() -> None:
    measuring, ordering = asking("a Measure", "b Measure"), asking("d Order")

    assert details(measuring.journal).startswith("**waiting** for 2 approvals · agent `mason`")
    assert details(ordering.journal).startswith("**waiting** for 1 result from outside · agent `mason`")


def test_a_call_that_runs_is_named_with_its_time() -> None:
    play = Play([calls("a Look", "b Look", arguments='{"at": "the `wall`"}')])
    play.say("Look")
    play.run(hold=True)

    lines = details(play.journal, play.running).split("  \n")

    assert lines[0].startswith("**working** · agent `mason`")
    assert lines[1:] == ['running since 2025-11-25 12:00:00 UTC: `Look` `` {"at": "the `wall`"} ``'] * 2


def test_sub_agents_at_work_are_named_and_whose_one_is() -> None:
    play = Family([tasks("a glazier", "b tiler")], parent=ABOVE)

    lines = asked(play)
    play.hear_of("a", "Glazed.")

    assert lines[0].startswith("**working** · agent `mason`")
    assert lines[1:] == [
        "sub-agent `master › mason`",
        "sub-agent at work since 2025-11-25 12:00:00 UTC: `glazier` `wall-7.a`",
        "sub-agent at work since 2025-11-25 12:00:00 UTC: `tiler` `wall-7.b`",
    ]
    assert "glazier" not in details(play.journal)


def test_no_more_calls_than_a_page_can_take_are_named() -> None:
    play = Play([calls(*(f"c-{number} Look" for number in range(10)))])
    play.say("Look")
    play.run(hold=True)

    lines = details(play.journal, play.running).split("  \n")

    assert (len(lines), lines[-1]) == (10, "and 2 more that run")


def test_a_model_that_is_asked_is_named() -> None:
    play = Play([text("Built.")])
    play.say("Build it")
    while not isinstance(step := play.begin(), Think):
        play.complete()

    assert details(play.journal, step=step).split("  \n")[1:] == ["asking `scripted:wall`, call 1"]


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


HOUR = 3_600_000


def timed(**deadline: Any) -> list[str]:
    """The lines about a call that waits with this deadline, an hour and a half after it was asked."""
    rules = PermissionContext(rules=RULES, deadline=Deadlines(**deadline))
    play = Play([calls("c-1 Paint")], spec=SPEC.model_copy(update={"permission": rules}))
    asked(play)
    play.now = NOON + HOUR * 3 // 2
    play.run()
    return details(play.journal).split("  \n")


def test_a_call_with_a_deadline_says_until_when_and_what_comes_then() -> None:
    assert "answer by 2025-11-26 12:00 UTC, then it is denied" in timed(expire_after="1d")
    assert "answer by 2025-11-26 12:00 UTC, then it still waits, overdue" in timed(expire_after="1d", on_expiry="park")


def test_whoever_a_call_goes_to_next_is_named() -> None:
    later = timed(escalate_after="3h", escalate_to="the `foreman`", expire_after="1d")

    assert (
        "answer by 2025-11-26 12:00 UTC, then it is denied; goes to `` the `foreman` `` at 2025-11-25 15:00 UTC"
        in later
    )


def test_tasks_and_their_progress_stand_under_the_head() -> None:
    tool = ToolDescriptor(name="todo_write", inside=True, read_only=True, effect=Effect.READ)
    todos = [{"content": "Dig", "status": "completed"}, {"content": "Lay bricks", "status": "in_progress"}]
    written = calls("t-1 todo_write", arguments=json.dumps({"todos": todos}))

    lines = asked(Play([written, calls("c-1 Paint")], tools=(*TOOLS, tool)))

    assert lines[0].startswith("**waiting** for 1 approval · agent `mason` · 2 model calls · ")
    assert lines[1] == "tasks 1/2: `Lay bricks`"
