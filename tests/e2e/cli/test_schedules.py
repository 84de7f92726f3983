"""The commands about schedules and sleep, and the pages about them."""

import re
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import find_sections, load_agent
from longhaul.starter.client.client import Longhaul
from longhaul.starter.render import when
from tests.e2e.conftest import Cli
from tests.e2e.terminal import Terminal, at_a_terminal

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[3]
WAITS = {"id": "bell-1", "name": "wait_for", "input": {"event": "bell", "timeout": "30d"}}


async def test_a_sleep_is_shown_and_ended_by_a_notification(cli: Cli, app: Longhaul) -> None:
    model = cli.script({"tool_calls": [WAITS]}, {"text": "It rang."})
    session = app.session("belfry", agent=AgentSpec(model=model, tools=("wait_for",)))

    waiting = await session.reply("Wait for the bell")
    shown = cli("show", "belfry")
    rows = cli("inbox", "--json")
    rung = cli("notify", "belfry", "bell", "--payload", "twelve times", "--request-id", "noon", "--json")
    again = cli("notify", "belfry", "bell", "--payload", "twelve times", "--request-id", "noon")
    refused = cli("notify", "belfry", "bell", "--request-id", "noon")
    done = await session.wait(waiting.id)

    assert "asleep" in shown.out
    assert "or until somebody sends the event 'bell'" in shown.out
    assert "longhaul notify belfry bell" in shown.out
    row = next(row for row in rows.document if row["session"] == "belfry")
    assert (row["waits_for"], row["event"], row["tool"]) == ("event", "bell", "wait_for")
    assert rung.document == {"session": "belfry", "event": "bell", "woken": True}
    assert again.out == "belfry does not wait for it now; it gets the event when it does, once for each request id\n"
    assert (refused.code, "was used before for another notification" in refused.err) == (2, True)
    assert done.get_text_content() == "It rang."
    assert '"twelve times"' in done.get_tool_results()[0].get_text()


def test_who_runs_a_session_that_sleeps_is_let_go_and_who_chats_with_it_stays(cli: Cli, tmp_path: Path) -> None:
    model = cli.script({"tool_calls": [WAITS]}, {"text": "It rang."})
    agent = tmp_path / "ringer.toml"
    agent.write_text(f'model = "{model}"\ntools = ["wait_for"]\n')

    left = at_a_terminal(cli, "run", "Wait for the bell", "--session", "chapel", "--agent", str(agent), answers=[])
    with Terminal(cli, "chat", "--session", "chapel", "--agent", str(agent)) as terminal:
        terminal.until("wait_for")
        assert cli("notify", "chapel", "bell").code == 0
        terminal.until("It rang.")
        terminal.types("\x04")
        seen = terminal.end()

    assert (left.code, seen.code) == (3, 0)
    assert "longhaul notify chapel bell" in left.shown


async def test_the_schedules_of_an_agent_file_are_brought_into_being_once(
    cli: Cli, app: Longhaul, tmp_path: Path
) -> None:
    model = cli.script({"text": "2 m."})
    file = tmp_path / "ebb-watch.toml"
    file.write_text(f'model = "{model}"\n[schedules.ebb]\nprompt = "How low?"\ncron = "0 0 1 1 *"\n', encoding="utf-8")

    added, again = (cli("schedule", "apply", str(file)) for _ in range(2))
    file.write_text(f'model = "{model}"\n[schedules.ebb]\nprompt = " "\ncron = "0 0 1 1 *"\n', encoding="utf-8")
    wrong = cli("schedule", "apply", str(file))
    await app.schedules.remove("ebb")

    assert (added.code, added.out) == (0, "ebb: added\n")
    assert (again.code, again.out) == (0, "ebb: unchanged\n")
    assert (wrong.code, "schedules.ebb: prompt: it is empty" in wrong.err) == (2, True)


async def test_a_schedule_is_added_shown_triggered_and_removed(cli: Cli, app: Longhaul) -> None:
    model = cli.script({"text": "High."}, {"text": "Low."})

    added = cli(
        *("schedule", "add", "spring-tide", "How high?", "--cron", "0 0 1 1 *", "--zone", "Europe/Berlin"),
        *("--model", model, "--session", "tide-log", "--overlap", "queue", "--catch-up", "2h", "--json"),
    )
    wrong = cli("schedule", "add", "neap", "Hm", "--every", "often", "--model", model)
    endless = cli("schedule", "add", "neap", "Hm", "--every", "99999999999d", "--model", model)
    paused = cli("schedule", "pause", "spring-tide", "--why", "no water")
    shown = cli("schedule", "show", "spring-tide")
    triggered = cli("schedule", "trigger", "spring-tide")
    scheduled_runs = await app.schedules.scheduled_runs("spring-tide")
    done = await app.session("tide-log", agent=AgentSpec(model=model)).wait(scheduled_runs[0].reply_id)
    past = cli("schedule", "show", "spring-tide", "--json")
    removed = cli("schedule", "remove", "spring-tide")

    assert added.code == 0, added.err
    assert added.document["in_words"] == (
        "at '0 0 1 1 *' in Europe/Berlin; each run uses session 'tide-log'; a run waits until the previous run "
        "has ended; runs missed while the server was down start late, if they are not older than 2h"
    )
    assert (wrong.code, "--every: 'often' is no span" in wrong.err) == (2, True)
    assert (endless.code, "--every: 3650d is the most" in endless.err) == (2, True)
    assert paused.out == "spring-tide is paused\n"
    assert "spring-tide, paused: no water" in shown.out
    said = (
        f"spring-tide is triggered\n  {when(scheduled_runs[0].at)}  asked      tide-log {scheduled_runs[0].reply_id}\n"
    )
    assert triggered.out == said
    assert done.get_text_content() == "High."
    assert past.document["scheduled_runs"][0]["session"] == "tide-log"
    assert removed.code == 0


async def test_of_a_day_that_summer_time_begins_or_ends_on_the_page_says_what_fires(app: Longhaul, cli: Cli) -> None:
    model = cli.script({"text": "Low."})
    await app.schedules.add(
        "dawn", "How low?", agent=AgentSpec(model=model), cron="30 2 * * *", zone="Europe/Berlin", paused=True
    )
    fires = dict[int, list[int]]()
    for month, first in ((3, 27), (10, 30)):
        begin, end = (datetime(2027, month, first, tzinfo=UTC) + timedelta(days=days) for days in (0, 3))
        asked = ListScheduleMatchingTimesRequest(namespace=app.client.namespace, schedule_id="longhaul.schedule.dawn")
        asked.start_time.FromDatetime(begin)
        asked.end_time.FromDatetime(end)
        found = await app.client.workflow_service.list_schedule_matching_times(asked)
        fires[month] = [time.ToDatetime().day for time in found.start_time]

    assert fires == {3: [27, 29], 10: [30, 31, 1]}


def test_the_agent_of_the_page_is_one_and_each_of_its_settings_is_explained() -> None:
    page = (ROOT / "docs" / "agents" / "unattended.md").read_text(encoding="utf-8")
    spec = load_agent(ROOT / "agents" / "caretaker.toml")
    table = tomllib.loads((ROOT / "agents" / "caretaker.toml").read_text(encoding="utf-8"))

    assert {"sleep", "wait_for"} <= {*spec.tools}
    assert spec.permission.mode == "dont_ask"
    assert spec.permission.deadline is not None
    assert spec.permission.deadline.escalate_to
    assert spec.budget is not None
    assert spec.budget.on_exhaustion == "summarise"
    assert [*find_sections(str(ROOT / "agents" / "caretaker.toml")).schedules] == ["week"]
    settings = ("max_iters", "[permission.deadline]", "outage_wait_seconds", "LONGHAUL_NOTIFY", "[budget]", "catch_up")
    chosen = ('mode = "dont_ask"', 'on_exhaustion = "summarise"', 'overlap = "skip"')
    for words in (*settings, *chosen):
        assert words in page
    assert [table["permission"]["mode"], table["budget"]["on_exhaustion"], table["schedules"]["week"]["overlap"]] == [
        words.split('"')[1] for words in chosen
    ]


def test_the_commands_of_the_page_are_the_commands_that_there_are(cli: Cli) -> None:
    page = (ROOT / "docs" / "agents" / "schedules.md").read_text(encoding="utf-8")
    typed = set(re.findall(r"^longhaul schedule (\w+)", page, re.MULTILINE))

    helped = cli("schedule", "--help").out

    assert typed == set(re.findall(r"^\W*(\w+) +[A-Z]", helped, re.MULTILINE)) & typed
    assert typed >= {"add", "list", "show", "pause", "resume", "remove", "trigger"}
