"""The list of sessions: filters and pages that stand in the address, also of a thousand."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.async_api import expect
from temporalio.api.batch.v1 import BatchOperationTermination
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest
from temporalio.client import WorkflowHandle

from longhaul.starter.client.client import Longhaul
from longhaul.workflows.contract import WORKFLOW
from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.console.test_answering import HANDS_A_PLAN, PLANS
from tests.e2e.serve.test_sessions import WANTS_TO_EDIT, agent, listed
from tests.e2e.serving import Address
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)

MANY = 1_000
AT_ONCE = 50


@pytest.mark.proves("X15")
async def test_sessions_are_found_by_state_agent_and_text(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    waits = agent(tmp_path, WANTS_TO_EDIT)
    rests = agent(tmp_path, {"text": "Hello."}, name="buoy")
    async with served.client() as ana:
        for path in (waits, rests):
            await ana.post(f"{path}/messages?wait=30", json={"messages": "Greet the moon"})
        await listed(ana, waits.rpartition("/")[2])
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/sessions")
    rows = page.locator("#sessions [data-row] b")
    await expect(rows).to_have_count(2)
    found = {}
    for label, value in (("State", "waiting"), ("Agent", "buoy"), ("Text", "EDIT")):
        await page.goto(f"{served.url}/console/sessions")
        field = page.get_by_label(label, exact=True)
        await (field.select_option(value) if label == "State" else field.fill(value))
        await page.get_by_role("button", name="Apply").click()
        await page.wait_for_url(f"**{value}**")
        await expect(rows).to_have_count(1)
        found[label] = await rows.inner_text()
        await page.reload()
        assert await field.input_value() == value
    await page.goto(f"{served.url}/console/sessions?status=closed&text=<b>\u202e")
    nothing = await page.locator("#sessions").inner_text()

    await page.goto(f"{served.url}/console/sessions?text=greet")
    await expect(rows).to_have_count(2)
    row = page.locator("#sessions [data-row]", has_text="buoy")
    await expect(row.locator(".title")).to_have_text("Greet the moon")
    await expect(row).to_contain_text(re.compile(r" · [\d,]+ tokens.*started ", re.DOTALL))
    first, second = waits.rpartition("/")[2], rests.rpartition("/")[2]
    assert found == {"State": first, "Agent": second, "Text": first}
    assert "No session fits these filters." in nothing


@pytest.mark.proves("X15")
async def test_the_inbox_is_narrowed_by_tool_and_lateness(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    bash = {"tool_calls": [{"id": "b-1", "name": "Bash", "input": {"command": "touch lit"}}]}
    sleeps = {"tool_calls": [{"id": "s-1", "name": "wait_for", "input": {"event": "tide", "timeout": "30d"}}]}
    late = '[permission.deadline]\nremind_after = "1s"'
    asked = agent(tmp_path, bash, name="buoy"), agent(tmp_path, WANTS_TO_EDIT, more=late)
    rests = agent(tmp_path, sleeps, name="gull", more='tools = ["wait_for"]')
    async with served.client() as ana:
        for path in (*asked, rests):
            await ana.post(f"{path}/messages", json={"messages": "Greet the moon"})
        for path in (*asked, rests):
            await listed(ana, path.rpartition("/")[2])
    page = await signed_in("ana")
    rows, names = page.locator("#waiting [data-row]"), [path.rpartition("/")[2] for path in asked]
    await expect(rows).to_have_count(2)
    asleep = await page.locator("#asleep").inner_text()
    title = await page.title()
    await page.get_by_label("Tool", exact=True).fill("Bash")
    await page.get_by_role("button", name="Apply").click()
    await page.wait_for_url("**tool=Bash**")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text(names[0])
    await page.goto(f"{served.url}/console")
    await page.get_by_label("overdue only").check()
    await page.get_by_role("button", name="Apply").click()
    await page.wait_for_url("**overdue=true**")
    await expect(rows).to_contain_text(names[1])
    await page.goto(f"{served.url}/console?tool=<b>Edit")

    await expect(page.locator("#waiting")).to_contain_text("Nothing that waits fits these filters.")
    await page.get_by_role("link", name="All that waits").click()
    await expect(rows).to_have_count(2)
    assert rests.rpartition("/")[2] in asleep
    assert title.startswith("(2) Inbox")


async def test_the_first_page_counts_sorts_and_searches(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    bash = {"tool_calls": [{"id": "b-1", "name": "Bash", "input": {"command": "touch lit"}}]}
    sleeps = {"tool_calls": [{"id": "s-1", "name": "wait_for", "input": {"event": "tide", "timeout": "30d"}}]}
    asked = agent(tmp_path, bash, name="buoy"), agent(tmp_path, WANTS_TO_EDIT)
    rests = agent(tmp_path, sleeps, name="gull", more='tools = ["wait_for"]')
    async with served.client() as ana:
        for path in (*asked, rests):
            await ana.post(f"{path}/messages", json={"messages": "Greet the moon"})
            await listed(ana, path.rpartition("/")[2])
    page = await signed_in("ana")
    rows, names = page.locator("#waiting [data-row]"), [path.rpartition("/")[2] for path in asked]
    await expect(page.locator("#standing")).to_contain_text(re.compile(r"2\s*calls wait\s*1\s*asleep\s*0\s*paused"))
    await expect(page.locator("#pages .badge")).to_have_text(re.compile("^2"))
    await page.goto(f"{served.url}/console?sort=newest")
    await expect(rows.first).to_contain_text(names[1])
    await page.goto(f"{served.url}/console?text=TOUCH+LIT")

    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text(names[0])
    assert await page.get_by_label("Search").input_value() == "TOUCH LIT"


async def test_a_session_that_sleeps_is_listed_so_and_woken(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    sleeps = {"tool_calls": [{"id": "s-1", "name": "wait_for", "input": {"event": "tide", "timeout": "30d"}}]}
    hears = {"text": "Up and away.", "expect": {"last_contains": "The tide is in"}}
    path = agent(tmp_path, sleeps, hears, name="tern", more='tools = ["wait_for"]')
    async with served.client() as ana:
        await ana.post(f"{path}/messages", json={"messages": "Greet the moon"})
        await listed(ana, path.rpartition("/")[2])
    page = await signed_in("ana")

    await page.goto(f"{served.url}/console/sessions?agent=tern")

    await expect(page.locator("#sessions [data-row]")).to_contain_text("nobody has to do anything")
    await page.goto(f"{served.url}/console/s/tern/{path.rpartition('/')[2]}/call?id=s-1")
    await page.get_by_label("What happened").fill("The tide is in")
    await page.get_by_role("button", name="Send the event").click()
    await page.wait_for_url("**/console?told=woken")
    await page.goto(f"{served.url}/console/s/tern/{path.rpartition('/')[2]}")
    await expect(page.locator("#transcript")).to_contain_text("Up and away.")


async def test_what_waits_longest_stands_first_and_a_team_has_its_own(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    team = f"keepers-{uuid4().hex[:6]}"
    asked = [
        agent(tmp_path, WANTS_TO_EDIT, name=name, more=more)
        for name, more in (("zebra", ""), ("ant", f'team = "{team}"'))
    ]
    async with served.client() as ana:
        for path in asked:
            await ana.post(f"{path}/messages?wait=30", json={"messages": "Greet the moon"})
            await listed(ana, path.rpartition("/")[2])
    page = await signed_in("ana")
    rows, names = page.locator("#waiting [data-row]"), [path.rpartition("/")[2] for path in asked]
    await expect(rows).to_have_count(2)
    for row, name in zip(await rows.all(), names, strict=True):
        await expect(row).to_contain_text(name)
    await page.get_by_label("Team").fill(team)
    await page.get_by_role("button", name="Apply").click()
    await page.wait_for_url(f"**team={team}**")

    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text(names[1])


def lead_of_a_scribe(folder: Path, *also: dict[str, Any]) -> str:
    """The path of a new session whose sub-agent asks to write a file. `also`: calls that the lead makes with it."""
    writes = {"tool_calls": [{"id": "w-1", "name": "Write", "input": {"file_path": "moon.txt", "content": "full"}}]}
    agent(folder, writes, {"text": "Written."}, name="scribe", more='tools = ["Write"]')
    starts = {"id": "t1", "name": "Agent", "input": {"agent": "scribe", "task": "write it down"}}
    model = (folder / "agents" / "scribe.toml").read_text().splitlines()[0]
    below = f'tools = ["Bash"]\n[agents.scribe]\n{model}\ntools = ["Write"]'
    return agent(folder, {"tool_calls": [starts, *also]}, {"text": "Done."}, name="lead", more=below)


async def logging_the_moon(served: Address, path: str) -> str:
    """The name of the lead, once the index knows that its sub-agent asks."""
    name = path.rpartition("/")[2]
    async with served.client() as ana:
        await ana.post(f"{path}/messages", json={"messages": "Log the moon"})
        await listed(ana, name)
    return name


@pytest.mark.proves("X15")
async def test_a_lead_says_that_its_sub_agent_waits_and_has_it_below_itself(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    path = lead_of_a_scribe(tmp_path)
    name = await logging_the_moon(served, path)
    async with served.client() as ana:
        alone = agent(tmp_path, {"text": "Lit."})
        await ana.post(f"{alone}/messages?wait=30", json={"messages": "Light it"})
    page = await signed_in("ana")
    waits = "a sub-agent waits for an answer"
    lists = dict[str, list[str]]()
    for asked in ("", "?sort=oldest", "?status=working"):
        await page.goto(f"{served.url}/console/sessions{asked}")
        lists[asked] = [" ".join(text.split()) for text in await page.locator("[data-row]").all_inner_texts()]
    await page.goto(f"{served.url}/console/sessions")
    lead = await page.locator("[data-row]", has_text=name).first.locator(".what").bounding_box()
    child = await page.locator("[data-row].depth-1 .what").bounding_box()
    await page.goto(f"{served.url}/console/s/lead/{name}")

    await expect(page.locator("#head h1")).to_contain_text("working a sub-agent waits for a person")
    await expect(page.locator(".at-work li")).to_contain_text("scribe waits for a person")
    assert lead is not None
    assert child is not None
    assert (child["x"] > lead["x"], child["y"] > lead["y"]) == (True, True), "it stands below, and further in"
    for asked, rows in lists.items():
        at = next(place for place, text in enumerate(rows) if text.startswith(f"{name} "))
        assert waits in rows[at], "and what the filter leaves out is known all the same"
        assert sum(waits in row for row in rows) == 1
        if asked != "?status=working":
            assert f"sub-agent of {name} · scribe" in rows[at + 1]
            assert "waits for an answer on Write" in rows[at + 1]
    assert [len(rows) for rows in lists.values()] == [3, 3, 1]


@pytest.mark.proves("X15")
async def test_each_row_of_the_inbox_says_what_may_happen_twice_and_who_judged_the_risk(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    (tmp_path / "greeting.txt").write_text("hello world\n")
    runs = {"tool_calls": [{"id": "b-1", "name": "Bash", "input": {"command": "touch lit"}}]}
    reads = {"tool_calls": [{"id": "r-1", "name": "Read", "input": {"file_path": "/etc/hostname"}}]}
    judged = 'tools = ["Bash"]\n[permission]\nanalyzers = ["rules"]'
    said = dict[str, str]()
    async with served.client() as ana:
        for word, reply, more in (
            ("again", WANTS_TO_EDIT, ""),
            ("once", runs, judged),
            ("reads", reads, 'tools = ["Read"]'),
            ("plan", HANDS_A_PLAN, PLANS),
        ):
            path = agent(tmp_path, reply, more=more)
            answer = await ana.post(f"{path}/messages?wait=30", json={"messages": word})
            assert answer.json()["status"] == "waiting"
            await listed(ana, path.rpartition("/")[2])
            said[word] = path.rpartition("/")[2]
    page = await signed_in("ana")
    await page.reload()
    rows = {word: page.locator("#waiting [data-row]", has_text=name).locator(".where") for word, name in said.items()}

    await expect(rows["again"]).to_contain_text("runs again if a worker dies · no analyzer looked")
    await expect(rows["once"]).to_contain_text(re.compile(r"runs at most once · risk \w+"))
    await expect(rows["once"]).not_to_contain_text("no analyzer")
    await expect(rows["reads"]).to_contain_text("only reads · no analyzer looked")
    await expect(rows["plan"]).to_contain_text("ends plan mode")
    await page.locator("#waiting [data-row]", has_text=said["again"]).click()
    await expect(page.locator(".facts")).to_contain_text("no analyzer looked")


@pytest.mark.proves("X15")
async def test_in_the_inbox_a_sub_agents_calls_stand_below_those_of_its_lead(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    runs = [{"id": f"b-{line}", "name": "Bash", "input": {"command": f"touch {line}"}} for line in ("ebb", "flood")]
    path = lead_of_a_scribe(tmp_path, *runs)
    async with served.client() as ana:
        await ana.post(f"{path}/messages", json={"messages": "Log the moon"})
    page = await signed_in("ana")
    rows = page.locator("#waiting [data-row]")
    await expect(rows).to_have_count(3)
    await page.reload()
    tools = [await row.locator(".what b").inner_text() for row in await rows.all()]

    assert tools == ["Bash", "Bash", "Write"]
    await expect(page.locator("#waiting .depth-1")).to_contain_text("moon.txt")


@pytest.mark.proves("X15")
async def test_what_a_sub_agent_waits_for_says_where_in_the_tree(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await logging_the_moon(served, lead_of_a_scribe(tmp_path))
    page = await signed_in("ana")
    row = page.locator("#waiting [data-row]")
    await expect(row).to_contain_text(f"lead › scribe › Write, for {name}")
    await page.goto(f"{served.url}/console/s/lead/{name}")
    await page.locator("#at-work").get_by_role("link", name="scribe", exact=True).click()
    await expect(page.locator("#waiting")).to_contain_text("moon.txt")
    await page.goto(f"{served.url}/console")
    await row.click()

    await expect(page.locator("main")).to_contain_text("sub-agent: lead › scribe")
    await page.get_by_role("button", name="Allow", exact=True).click()
    await page.wait_for_url("**/console?told=allowed")
    await page.goto(f"{served.url}/console/s/lead/{name}")
    await expect(page.locator("#transcript")).to_contain_text("Done.")
    assert (tmp_path / "moon.txt").read_text() == "full"


@pytest.fixture
async def many(app: Longhaul, people: dict[str, str]) -> AsyncIterator[None]:
    """Ana's thousand sessions that nobody works on: they are in the server's index alone."""
    room = asyncio.Semaphore(AT_ONCE)
    mark = uuid4().hex

    async def started(number: int) -> WorkflowHandle[object, object]:
        async with room:
            return await app.client.start_workflow(
                WORKFLOW,
                {},
                id=f"many-{mark}-{number}",
                task_queue=f"nobody-{mark}",
                memo={"session": f"many-{number:04}", "user": people["ana"], "agent": "lamp"},
            )

    await asyncio.gather(*(started(number) for number in range(MANY)))
    yield
    await app.client.workflow_service.start_batch_operation(
        StartBatchOperationRequest(
            namespace=app.client.namespace,
            visibility_query=f"TaskQueue = 'nobody-{mark}'",
            job_id=mark,
            reason="the test is over",
            termination_operation=BatchOperationTermination(identity="test"),
        )
    )


@pytest.mark.proves("X15")
@pytest.mark.usefixtures("many")
async def test_a_thousand_sessions_are_shown_in_pages(
    served: Address, signed_in: SignedIn, people: dict[str, str]
) -> None:
    page = await signed_in("eve")
    await page.goto(f"{served.url}/console/sessions?text={people['ana']}")
    said = page.locator("#sessions p").first
    async with asyncio.timeout(SURE_SECONDS):
        while "of 1000" not in await said.inner_text():
            await asyncio.sleep(0.2)  # the server's index is a moment late
            await page.reload()
    first = await page.locator("#sessions b").all_inner_texts()
    await page.get_by_role("link", name="Next page").click()
    await expect(said).to_contain_text("51 to 100 of 1000")
    second = await page.locator("#sessions b").all_inner_texts()
    await page.goto(f"{served.url}/console/sessions?text={people['ana']}&from=975")
    await expect(said).to_contain_text("976 to 1000 of 1000")
    beyond = await page.goto(f"{served.url}/console/sessions?from=x")

    assert len(first) == len(second) == 50
    assert not {*first} & {*second}
    assert beyond is not None
    assert beyond.status == 422
