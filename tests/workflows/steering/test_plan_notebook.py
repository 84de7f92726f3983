"""The plan notebook on a real server: switched on by the model, hinted, advanced, shown, and free of activities."""

import pytest

from longhaul.agent.values.plans import PLAN_TOOLS, PlanNotebook
from longhaul.starter import render_session
from tests.workflows.conftest import Stage
from tests.workflows.listener import asks_for, listening, says

pytestmark = pytest.mark.server

BOAT = {
    "name": "Boat",
    "description": "Of oak",
    "expected_outcome": "It swims",
    "subtasks": [
        {"name": name, "description": "by hand", "expected_outcome": f"a {name.lower()}"} for name in ("Keel", "Hull")
    ],
}
_TURNS = [
    asks_for("reset_equipped_tools", "c1", to_activate=["plan_related"]),
    asks_for("create_plan", "c2", **BOAT),
    asks_for("update_subtask_state", "c3", subtask_idx=0, state="in_progress"),
    asks_for("finish_subtask", "c4", subtask_idx=0, subtask_outcome="4 m of oak"),
    says("The keel is laid."),
    asks_for("finish_subtask", "c5", subtask_idx=1, subtask_outcome="it is tight"),
    asks_for("finish_plan", "c6", state="done", outcome="She swims."),
    says("Done."),
]


@pytest.mark.proves("C9")
async def test_a_plan_is_hinted_advanced_and_shown_and_costs_no_activity(stage: Stage) -> None:
    async with listening(lambda call: _TURNS[call]) as model:
        session = stage.session(tools=["fetch"], tool_groups={"plan_related": PlanNotebook()}, **model.config)

        first = await session.reply("Build a boat")
        status = await session.status()
        shown = [line.plain for line in render_session.keeping(status)]
        place = "tasks_context.tasks[1].subject"
        await session.stored.edit(place, "Hull of oak")
        last = await session.reply("And the hull?")

        assert [reply.get_text_content() for reply in (first, last)] == ["The keel is laid.", "Done."]
        offered = {tool["function"]["name"] for tool in model.heard["tools"]}
        assert offered == {"fetch", "reset_equipped_tools", "call_tool", *PLAN_TOOLS}
        heard = model.texts()

    asked = next(at for at, text in enumerate(heard) if "And the hull?" in text)
    assert any("There is no plan. Work of many steps begins with a plan" in text for text in heard[:asked])
    assert "1. [>] Hull of oak" in "".join(heard[asked : asked + 2])
    assert not {"create_plan", "finish_subtask"} & set(await stage.scheduled(session))
    assert status.plan is not None
    assert status.model_dump(mode="json")["plan"]["subtasks"] == [
        {"name": "Keel", "state": "completed", "outcome": "4 m of oak"},
        {"name": "Hull", "state": "in_progress"},
    ]
    assert shown[shown.index("plan Boat") - 1 :][:4] == [
        "tasks 1/2: Hull",
        "plan Boat",
        "  [x] Keel: 4 m of oak",
        "  [>] Hull",
    ]
    over = await session.status()
    assert (over.plan, over.tasks_total) == (None, 0)
    assert "plan Boat is over: done; She swims." in [line.plain for line in render_session.keeping(over)]
    (plan,) = (await session.state()).tasks_context.historical_plans
    assert [(task.subject, task.outcome) for task in plan.subtasks] == [
        ("Keel", "4 m of oak"),
        ("Hull of oak", "it is tight"),
    ]
