"""What a sub-agent works with: never more than the session that starts it, but for what its own agent file says."""

import pytest

from longhaul.agent.decisions.subagent_start import WITHIN, inherited, mode, secrets
from longhaul.agent.permission.decision_table import MODES, TABLE
from longhaul.agent.values.deadlines import Deadlines
from longhaul.agent.values.permission import (
    Behavior,
    Confirmation,
    PermissionContext,
    PermissionMode,
    PermissionRule,
    Risk,
    ToolApproval,
)
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig, Secrets
from longhaul.agent.values.spec.workspace import Seal, Workspace
from tests.agent.family import GLAZIER, HOUSE, Family
from tests.agent.play import text

STRICTNESS = {None: 0, Behavior.ALLOW: 0, Behavior.ASK: 1, Behavior.DENY: 2}


def standing(spec: AgentSpec = HOUSE, **configured: object) -> Family:
    """A session that has made a reply, with these settings changed since."""
    play = Family([text("Ready.")], spec=spec)
    play.say("Hello")
    play.run()
    if configured:
        play.tell("configure", configured)
    return play


def permitted(play: Family, **own: object) -> PermissionContext:
    permission = PermissionContext.model_validate(own)
    return inherited(play.journal, GLAZIER.model_copy(update={"permission": permission})).permission


def test_rules_that_deny_and_ask_go_down_and_those_that_allow_do_not() -> None:
    play = standing()
    play.tell("rules", {"add": [{"tool_name": "Bash", "rule_content": "rm:*", "behavior": "deny"}], "by": "ana"})
    play.tell("rules", {"add": [{"tool_name": "Bash", "rule_content": "ls:*", "behavior": "allow"}], "by": "ana"})
    play.tell("rules", {"add": [{"tool_name": "Write", "behavior": "ask"}], "by": "ana"})

    own = PermissionRule(tool_name="Bash", rule_content="make:*")
    found = permitted(play, rules=[own])

    assert [(rule.spelt(), rule.behavior.value) for rule in found.rules] == [
        ("Demolish", "deny"),
        ("Bash(rm:*)", "deny"),
        ("Write", "ask"),
        ("Bash(make:*)", "allow"),
    ]
    assert [rule.source for rule in found.rules] == ["the house", "session wall-7", "session wall-7", ""]


@pytest.mark.parametrize("above", PermissionMode)
@pytest.mark.parametrize("own", PermissionMode)
def test_no_mode_of_an_agent_file_lets_more_run_than_that_of_the_session(
    above: PermissionMode, own: PermissionMode
) -> None:
    taken = mode(above, own)

    def column(found: PermissionMode) -> int:
        return MODES.index(PermissionMode.EXPLORE if found is PermissionMode.PLAN else found)

    last = list(TABLE.values())[-1]
    assert STRICTNESS[last[column(taken)]] >= STRICTNESS[last[column(above)]]
    assert taken in (above, PermissionMode.EXPLORE) or taken in WITHIN[above]
    if own is PermissionMode.DEFAULT and above is not PermissionMode.PLAN:
        assert taken is above


def test_every_mode_is_ranked() -> None:
    assert set(WITHIN) == set(PermissionMode)


@pytest.mark.parametrize(
    ("above", "own", "taken"),
    [
        ("bypass", "accept_edits", "accept_edits"),
        ("bypass", "default", "bypass"),
        ("accept_edits", "bypass", "accept_edits"),
        ("default", "bypass", "default"),
        ("default", "explore", "explore"),
        ("dont_ask", "bypass", "dont_ask"),
        ("explore", "bypass", "explore"),
        ("plan", "bypass", "explore"),
    ],
)
def test_the_mode_is_the_sessions_or_a_stricter_one(above: str, own: str, taken: str) -> None:
    play = standing(mode=above)

    assert permitted(play, mode=own).mode.value == taken


def test_who_confirms_and_who_analyses_is_never_less() -> None:
    signed = PermissionContext(
        analyzers=("rules",),
        analyzer_model="scripted:judge",
        approvals="signed",
        tools={"Bash": ToolApproval(approvers=2), "Write": ToolApproval(approvers=1)},
        grantable=("Bash(make:*)",),
        working_directories=("/srv/a", "/srv/b"),
        confirm=Confirmation(policy="risky", threshold=Risk.MEDIUM),
        deadline=Deadlines(expire_after=60),
    )
    play = standing(HOUSE.model_copy(update={"permission": signed}))

    bare = permitted(play)
    own = permitted(
        play,
        analyzers=["model"],
        approvals="any",
        tools={"Bash": {"approvers": 1}, "Write": {"approvers": 3}},
        grantable=["Bash(make:*)", "Bash(rm:*)"],
        working_directories=["/srv/b", "/etc"],
        confirm={"policy": "risky", "threshold": "high"},
    )

    assert (bare.analyzers, bare.analyzer_model, bare.approvals) == (("rules",), "scripted:judge", "signed")
    assert (bare.confirm.policy, bare.confirm.threshold) == ("risky", Risk.MEDIUM)
    assert (bare.working_directories, bare.grantable) == (("/srv/a", "/srv/b"), ())
    assert bare.deadline == signed.deadline
    assert (own.analyzers, own.approvals) == (("rules", "model"), "signed")
    assert {name: approval.approvers for name, approval in own.tools.items()} == {"Bash": 2, "Write": 3}
    assert (own.grantable, own.working_directories) == (("Bash(make:*)",), ("/srv/b",))
    assert own.confirm.threshold is Risk.MEDIUM
    assert permitted(play, confirm="always").confirm.policy == "always"


def test_a_sub_agent_is_judged_by_whom_the_session_is_judged_by() -> None:
    watched = standing(HOUSE.model_copy(update={"permission": PermissionContext(analyzers=("model",))}))
    alone = standing()

    assert permitted(watched, analyzer_model="scripted:lax").analyzer_model == "scripted:wall"
    assert permitted(alone, analyzers=["model"], analyzer_model="scripted:own").analyzer_model == "scripted:own"


def test_secrets_are_those_of_the_session_by_name() -> None:
    above = Secrets(allow=("TOKEN",), tools={"Bash": ("KEY",)}, mark=True)

    assert secrets(above, None) == above
    assert secrets(None, Secrets(allow=("TOKEN",))) is None
    assert secrets(above, Secrets(allow=("KEY", "OTHER"), tools={"Read": ("TOKEN", "OTHER")})) == Secrets(
        allow=("KEY",), tools={"Read": ("TOKEN",)}, mark=True
    )


def test_folder_sandbox_middlewares_and_team_go_down() -> None:
    play = standing(
        HOUSE.model_copy(
            update={
                "sandbox": "proven",
                "sandbox_network": False,
                "middlewares": ("guard",),
                "team": "site",
                "on_unknown_outcome": "ask",
                "offloader": "none",
            }
        )
    )

    bare = inherited(play.journal, GLAZIER)
    own = inherited(
        play.journal,
        GLAZIER.model_copy(
            update={
                "sandbox": "all",
                "sandbox_network": True,
                "middlewares": ("own", "guard"),
                "team": "panes",
                "workspace": Workspace(root="/elsewhere"),
                "idle_close_seconds": 60,
            }
        ),
    )

    assert bare.workspace == Workspace(root="/site")
    assert (bare.sandbox, bare.sandbox_network, bare.middlewares) == ("proven", False, ("guard",))
    assert (bare.team, bare.on_unknown_outcome, bare.offloader, bare.idle_close_seconds) == (
        "site",
        "ask",
        "none",
        3_600,
    )
    assert own.workspace == Workspace(root="/elsewhere")
    assert (own.sandbox, own.sandbox_network, own.middlewares) == ("all", False, ("guard", "own"))
    assert (own.team, own.idle_close_seconds) == ("panes", 60)


@pytest.mark.parametrize(
    ("own", "seal"),
    [
        (None, Seal(network=True, file_mb=10)),
        (Workspace(root="", place="worktree"), Seal(network=True, file_mb=10)),
        (Workspace(root="/elsewhere"), Seal(network=True, file_mb=10)),
        (
            Workspace(root="/elsewhere", place="sandbox", seal=Seal(file_mb=20, processes=5, image="build")),
            Seal(file_mb=10, processes=5, image="build"),
        ),
    ],
)
def test_below_a_sandbox_there_is_that_sandbox_whatever_an_agent_file_says(own: Workspace | None, seal: Seal) -> None:
    lead = Workspace(root="/site", place="sandbox", seal=Seal(network=True, file_mb=10))
    play = standing(HOUSE.model_copy(update={"workspace": lead}))

    found = inherited(play.journal, GLAZIER.model_copy(update={"workspace": own}))

    assert found.workspace == Workspace(root="/site", place="sandbox", seal=seal)
    assert "working tree" not in found.system_prompt


def test_one_without_a_model_has_the_sessions_as_it_is_now() -> None:
    play = standing(model="scripted:other")
    config = ModelConfig(max_retries=3)
    play.journal.spec = play.journal.spec.model_copy(update={"llm_config": config})

    bare = inherited(play.journal, GLAZIER)
    own = inherited(play.journal, GLAZIER.model_copy(update={"model": "scripted:pane"}))

    assert (bare.model, bare.llm_config) == ("scripted:other", config)
    assert (own.model, own.llm_config) == ("scripted:pane", ModelConfig())


def test_what_is_inherited_is_an_agent_that_can_be_written_down() -> None:
    spec = inherited(standing().journal, GLAZIER)

    assert AgentSpec.model_validate_json(spec.model_dump_json()) == spec
