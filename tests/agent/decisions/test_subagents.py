"""Sub-agents: begun once from a call, heard of by operation, told what concerns them, and reporting themselves."""

import json

from longhaul.agent import entries as e
from longhaul.agent.decisions.subagent_start import beginning, lost
from longhaul.agent.plain.values import digest_of
from longhaul.agent.steps import Idle, Park
from longhaul.agent.values.conversation.messages import ErrorInfo, ToolCallBlock
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.agent.values.spec.workspace import Workspace, branch_of
from longhaul.agent.views.session_views import family, path, row_of, status_word
from tests.agent.family import ABOVE, GLAZIER, HOUSE, Family, tasks
from tests.agent.play import calls, spec_with, spoken, text


def started(*pairs: str) -> Family:
    """A session that waits for these sub-agents."""
    play = Family([tasks(*pairs), text("All set.")])
    play.say("Build")
    assert play.run() == Park("outside")
    return play


def test_a_task_begins_a_session_that_follows_from_its_call() -> None:
    play = started("a glazier")

    child, parent, spec, request = play.started["a"]

    assert (child.session_id, child.workflow_id) == ("wall-7.a", "longhaul/glazier/ana/wall-7.a")
    assert (parent.workflow_id, parent.session_id, parent.path) == ("longhaul/mason/ana/wall-7", "wall-7", ("mason",))
    assert spec.system_prompt.startswith("You set panes.\n\nYou are a sub-agent of 'mason', at level 1 of at most 3.")
    assert [message.get_text_content() for message in request.messages] == ["do a"]
    assert request.request_id == "a"
    assert request.body_digest == digest_of([message.model_dump(mode="json") for message in request.messages])


def test_of_a_session_with_an_opaque_id_a_sub_agent_has_one_too() -> None:
    play = started("a glazier")
    call = play.journal.current.calls["a"]

    hidden = [beginning(play.journal, call, f"longhaul/##{key}").child.workflow_id for key in ("k1", "k1", "k2")]

    assert all(each.startswith("longhaul/##") for each in hidden)
    assert hidden[0] == hidden[1] != hidden[2]


def test_what_it_says_last_is_the_result_and_the_reply_goes_on() -> None:
    play = started("a glazier", "b tiler")

    assert play.hear_of("b", "Tiled.") == {"recorded": True}
    play.run()
    assert status_word(play.journal) == "working"
    play.hear_of("a", "Glazed.")
    play.run()

    assert play.results() == [("b", "success", "Tiled."), ("a", "success", "Glazed.")]
    assert spoken(play.journal.state.context)[-1] == "All set."
    assert play.passed_on == []


def test_a_report_counts_once() -> None:
    play = started("a glazier")
    play.hear_of("a", "Glazed.")
    play.run()

    assert play.hear_of("a", "Glazed twice.") == {"recorded": False}
    play.run()

    assert play.results() == [("a", "success", "Glazed.")]


def test_a_report_that_comes_before_its_start_is_confirmed_counts() -> None:
    play = Family([tasks("a glazier"), text("All set.")])
    play.say("Build")
    play.starting = True
    play.run(hold=True)
    child = beginning(play.journal, play.journal.current.calls["a"], "w").child

    play.hear_of("a", "Glazed.")
    play.running.clear()
    play.write(e.ChildStarted(child=child))
    play.run()

    assert play.results() == [("a", "success", "Glazed.")]
    assert [child.outcome for child in play.journal.children.values()] == ["success"]
    assert play.passed_on == []


def test_a_report_that_nobody_waits_for_is_refused() -> None:
    play = started("a glazier")

    wrong = play.tell(
        "child_reported", {"call_id": "a", "session_id": "wall-8.a", "state": "success", "output": "Ours."}
    )

    assert wrong == "session_id: 'a' is the task of 'wall-7.a', not of 'wall-8.a'"
    assert play.hear_of("z", "Who?") == "call_id: 'z' has no sub-agent here"
    assert play.results() == []


def test_a_long_report_is_looked_at_by_a_worker_first() -> None:
    play = started("a glazier")
    play.journal.spec = play.journal.spec.model_copy(update={"context_config": ContextConfig(tool_result_limit=50)})

    play.hear_of("a", "pane " * 100)

    assert play.journal.open_calls["a"].received is not None
    play.run()
    assert play.results() == [("a", "success", "pane " * 100)]


def test_sub_agents_outlive_a_continue_as_new_of_the_session_that_waits() -> None:
    play = started("a glazier", "b tiler")

    play.continue_as_new()
    play.hear_of("a", "Glazed.")
    play.hear_of("b", "Tiled.")
    play.run()

    assert play.results() == [("a", "success", "Glazed."), ("b", "success", "Tiled.")]


def test_an_unknown_agent_and_a_broken_task_are_no_calls() -> None:
    broken = ToolCallBlock(id="c", name="Agent", input='{"agent": "tiler", "task": ""}')
    play = Family([[*tasks("a glazer", "b roofer"), broken], text("Then not.")])
    play.say("Build")
    play.run()

    assert [(call_id, state) for call_id, state, _ in play.results()] == [
        ("a", "error"),
        ("b", "error"),
        ("c", "error"),
    ]
    told = [said for _, _, said in play.results()]
    assert told[0] == "This call did not run: there is no agent 'glazer'; did you mean 'glazier'?"
    assert told[1] == "This call did not run: there is no agent 'roofer'; there are: glazier, tiler"
    assert "task" in told[2]
    assert play.started == {}


def test_no_more_are_started_in_a_reply_than_its_agent_may() -> None:
    play = Family([tasks("a tiler", "b tiler"), tasks("c tiler", "d tiler"), text("Enough.")])
    play.say("Build")
    play.run()
    for call_id in ("a", "b"):
        play.hear_of(call_id, "Tiled.")
    play.run()
    play.hear_of("c", "Tiled.")
    play.run()

    assert list(play.started) == ["a", "b", "c"]
    refused = "This call did not run: this reply has started as many sub-agents as it may, and that is 3"
    assert ("d", "error", refused) in play.results()


def test_an_interrupt_goes_down_and_what_they_say_then_is_the_result() -> None:
    play = started("a glazier", "b tiler")

    play.tell("interrupt")
    play.begin()
    assert play.passed_on == [("interrupt", ("a", "b"))]
    play.hear_of("a", "Half a pane is set.", "interrupted")
    play.run()

    glazed, tiled = play.results()
    assert glazed == ("a", "interrupted", "Half a pane is set.")
    assert tiled[:2] == ("b", "interrupted")
    assert "is being stopped; it has not said yet how far it came" in tiled[2]
    assert "'wall-7.b'" in tiled[2]
    assert play.ends() == [("reply-of-r1", "interrupted")]


def test_what_comes_after_the_end_of_its_reply_changes_no_result() -> None:
    play = started("a glazier")
    play.tell("interrupt")
    play.run()
    before = play.results()

    assert play.hear_of("a", "I was done already.") == {"recorded": True}

    assert play.run() == Idle()
    assert play.results() == before
    assert play.journal.children["a"].outcome == "success"


def test_one_is_not_told_to_stop_before_its_session_is_there() -> None:
    play = Family([tasks("a glazier")])
    play.say("Build")
    play.starting = True
    play.run(hold=True)
    play.tell("interrupt")

    assert play.begin() == Park("running calls")
    play.confirm_start("a")
    assert play.begin() == Park("running calls")
    play.running.clear()
    play.run()

    assert play.passed_on == [("interrupt", ("a",))]


def test_a_pause_goes_down_once_and_so_does_its_end() -> None:
    play = started("a glazier")

    play.tell("pause", {"by": "ana"})
    play.run()
    play.continue_as_new()
    play.run()
    play.tell("resume", {"by": "ana"})
    play.run()

    assert play.passed_on == [("pause", ("a",)), ("resume", ("a",))]


def test_a_paused_session_starts_none() -> None:
    play = Family([tasks("a glazier"), text("All set.")])
    play.say("Build")
    play.begin()
    play.complete()
    play.begin()
    play.tell("pause")
    play.complete()
    play.run()

    assert play.started == {}
    play.tell("resume")
    play.run()
    assert list(play.started) == ["a"]


def test_a_denied_sibling_ends_a_reply_and_its_sub_agents_where_denials_do() -> None:
    spec = HOUSE.model_copy(update={"react_config": spec_with(stop_on_reject=True).react_config})
    play = Family([[*tasks("a glazier"), *calls("b Order")], text("Never.")], spec=spec)
    play.say("Build")
    play.run()
    play.journal.current.rejected = True
    play.run()

    assert play.passed_on == [("interrupt", ("a",))]
    assert play.ends() == [("reply-of-r1", "rejected")]


def test_a_lost_one_is_told_as_lost() -> None:
    play = started("a glazier")

    for entry in lost(play.journal, play.journal.children["a"], "terminated"):
        play.write(entry)
    play.run()

    ((_, state, said),) = play.results()
    assert state == "error"
    assert said.startswith("No result: the session 'wall-7.a' of the sub-agent 'glazier' was ended from outside")
    assert lost(play.journal, play.journal.children["a"], "again") == ()


def test_a_lost_one_with_a_working_tree_of_its_own_is_told_of_with_its_branch() -> None:
    apart = GLAZIER.model_copy(update={"workspace": Workspace(root="", place="worktree")})
    spec = HOUSE.model_copy(update={"agents": {**HOUSE.agents, "glazier": apart}})
    play = Family([tasks("a glazier"), text("All set.")], spec=spec)
    play.say("Go", "r1")
    play.run()
    child = play.journal.children["a"]

    for entry in lost(play.journal, child, "terminated"):
        play.write(entry)

    ((_, _, said),) = play.results()
    assert f"lies on branch {branch_of(child.workflow_id)}" in said


def test_nobody_is_waited_for_where_a_sub_agent_works() -> None:
    play = started("a glazier")

    assert play.journal.current.waiting() == []
    assert row_of(play.journal).status == "working"
    assert "waits for nothing of the kind" in str(
        play.tell("external_result", {"results": [{"id": "a", "output": ""}]})
    )


def test_a_sub_agent_reports_once_how_its_task_ended() -> None:
    play = Family([calls("p Look"), text("The pane is set.")], parent=ABOVE)
    play.say("Set it", ABOVE.call_id)
    play.run()

    (report,) = play.reports
    assert report is not None
    assert (report.call_id, report.session_id, report.state) == ("t1", "wall-7", "success")
    assert report.output == "The pane is set."
    assert path(play.journal, "Bash") == "master › mason › Bash"
    assert family(play.journal)["path"] == "master › mason"


def test_it_reports_again_when_it_is_asked_to_and_in_another_life() -> None:
    play = Family([text("Set.")], parent=ABOVE)
    play.say("Set it", ABOVE.call_id)
    play.run()

    assert play.tell("report_again", {"call_id": "t1"}) == {"asked": True}
    play.run()
    assert "no sub-agent with the task" in str(play.tell("report_again", {"call_id": "t2"}))
    play.write(e.Restored(incarnation=2, source="store"))
    play.run()

    assert [report.output for report in play.reports if report] == ["Set.", "Set.", "Set."]


def test_other_requests_to_a_sub_agent_are_not_reported() -> None:
    play = Family([text("Set."), text("By hand.")], parent=ABOVE)
    play.say("Set it", ABOVE.call_id)
    play.run()
    play.say("And now?", "r9")
    play.run()

    assert len(play.reports) == 1


def test_how_it_ended_otherwise_is_said_in_the_report() -> None:
    failing = Family([ErrorInfo(type="auth", message="the key was refused")], parent=ABOVE)
    failing.say("Set it", ABOVE.call_id)
    failing.run()
    silent = Family([[]], parent=ABOVE)
    silent.say("Set it", ABOVE.call_id)
    silent.run()
    stopped = Family([calls("p Paint")], parent=ABOVE)
    stopped.say("Set it", ABOVE.call_id)
    stopped.run()
    stopped.tell("interrupt", {"request_id": ABOVE.call_id})
    stopped.run()

    told = [(report.state, report.output) for play in (failing, silent, stopped) for report in play.reports if report]
    assert [state for state, _ in told] == ["error", "success", "interrupted"]
    assert "did not complete its task (error: " in told[0][1]
    assert "without a word" in told[1][1]
    assert "did not complete its task (interrupted)" in told[2][1]


def test_what_an_interrupted_one_said_before_its_last_call_is_in_the_report() -> None:
    play = Family([[*text("Two panes are cracked."), *calls("p Paint")]], parent=ABOVE)
    play.say("Set it", ABOVE.call_id)
    play.run()

    play.tell("interrupt", {"request_id": ABOVE.call_id})
    play.run()

    (report,) = (report for report in play.reports if report)
    assert report.output.endswith(" Its last words:\nTwo panes are cracked.")


def test_a_task_that_never_began_is_reported_as_interrupted() -> None:
    play = Family([text("Never.")], parent=ABOVE, keeps=True)
    play.say("Set it", ABOVE.call_id)

    play.tell("interrupt", {"request_id": ABOVE.call_id})
    play.run()

    assert [report.state for report in play.reports if report] == ["interrupted"]


def test_a_report_is_cut_to_what_two_histories_take() -> None:
    play = Family([text("x" * 40_007)], parent=ABOVE)
    play.say("Set it", ABOVE.call_id)
    play.run()

    (report,) = play.reports
    assert report is not None
    assert report.output.endswith("(cut here: it has 40007 characters)")


def test_taint_goes_down_with_the_task_and_up_with_the_report() -> None:
    child = Family([text("Set.")], parent=ABOVE.model_copy(update={"tainted": "a page was read"}))
    child.say("Set it", ABOVE.call_id)
    child.run()
    play = started("a glazier")
    play.hear_of("a", "Glazed.", tainted="a page was read")

    assert child.journal.state.tainted == "a page was read"
    assert [report.tainted for report in child.reports if report] == ["a page was read"]
    assert play.journal.state.tainted != ""
    clean = started("a glazier")
    clean.hear_of("a", "Glazed.")
    assert clean.journal.state.tainted == ""


def asked_in_form(schema: object) -> Family:
    arguments = json.dumps({"agent": "glazier", "task": "count the panes", "answer_schema": schema})
    play = Family([[ToolCallBlock(id="a", name="Agent", input=arguments)], text("All set.")])
    play.say("Build")
    play.run()
    return play


def test_a_value_may_be_asked_for_in_a_form() -> None:
    form = {"type": "object", "properties": {"panes": {"type": "integer"}}}

    play = asked_in_form(form)

    assert play.started["a"].request.structured_schema == form


def test_a_form_that_nobody_can_ask_for_is_said_to_the_model() -> None:
    play = asked_in_form({"type": "array"})

    ((_, state, said),) = play.results()
    assert (state, play.started) == ("error", {})
    assert "answer_schema" in said
