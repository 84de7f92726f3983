"""The console in a browser: what waits is found, seen, and answered once."""

import re
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.e2e.console.conftest import SURE_MILLISECONDS, SignedIn
from tests.e2e.serve.test_sessions import WANTS_TO_EDIT, agent, listed
from tests.e2e.serving import Address
from tests.workflows.operations import until

pytestmark = pytest.mark.server

expect.set_options(timeout=SURE_MILLISECONDS)


async def waiting(served: Address, folder: Path, *after: dict[str, object], more: str = "") -> str:
    """The name of a session whose edit waits, and that the inbox has."""
    begins = () if after and "tool_calls" in after[0] else (WANTS_TO_EDIT,)
    path = agent(folder, *begins, *(after or ({"text": "Done."},)), more=more)
    name = path.rpartition("/")[2]
    async with served.client() as ana:
        answer = await ana.post(f"{path}/messages?wait=30", json={"messages": "Greet the moon"})
        assert answer.json()["status"] == "waiting"
        await listed(ana, name)
    return name


async def opened(page: Page, name: str) -> None:
    await page.reload()
    await page.locator("[data-row]", has_text=name).click()
    await shown(page)


async def shown(page: Page) -> None:
    await expect(page.get_by_role("heading", name="Edit greeting.txt")).to_be_visible()
    await page.wait_for_load_state()  # by then it knows the keys


@pytest.mark.proves("X15")
async def test_a_person_sees_the_change_and_allows_it(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await page.reload()
    title = await page.title()
    await opened(page, name)
    removed = await page.locator(".diff .removed").inner_text()
    added = await page.locator(".diff .added").inner_text()
    await page.keyboard.press("a")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/console?told=allowed")

    await page.goto(f"{served.url}/console/s/lamp/{name}")
    await expect(page.locator("#transcript")).to_contain_text("Done.")
    await expect(page.locator(".state").first).to_have_text("idle")
    assert title.startswith("(1) Inbox")
    assert (removed.strip(), added.strip()) == ("-hello world", "+hello moon")
    assert (tmp_path / "greeting.txt").read_text() == "hello moon\n"


@pytest.mark.proves("X15")
async def test_a_call_says_first_what_was_asked_for_and_what_the_agent_claims(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await page.set_viewport_size({"width": 800, "height": 700})
    await opened(page, name)
    why = page.locator(".why")
    await expect(why.locator("blockquote")).to_have_text(["Greet the moon", "I will greet the moon."])
    await expect(why).to_contain_text("its own claim, unchecked")
    claim, change, allow = [
        await page.locator(one).first.evaluate("one => one.getBoundingClientRect().top")
        for one in (".why", ".diff", "button.allow")
    ]

    assert claim < change
    assert 0 < allow < 700, "the buttons are in view"
    await expect(page.locator(".bar")).to_contain_text(re.compile(r"You decide as ana\.\w+"))


@pytest.mark.proves("X15")
async def test_a_person_denies_by_the_keyboard_alone_and_the_model_reads_why(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path, {"text": "Then not.", "expect": {"last_contains": "The moon is asleep"}})
    page = await signed_in("ana")
    await page.reload()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await shown(page)
    beside = [page.get_by_label("Why not", exact=True), page.get_by_role("button", name="Deny", exact=True)]
    tops = {round((await one.bounding_box() or {"y": -1.0})["y"]) for one in beside}
    await page.keyboard.press("d")
    await page.keyboard.type("The moon is asleep")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/console?told=denied")

    await page.goto(f"{served.url}/console/s/lamp/{name}")
    await expect(page.locator("#transcript")).to_contain_text("Then not.")
    assert len(tops) == 1, "the button stands beside its field"
    assert (tmp_path / "greeting.txt").read_text() == "hello world\n"


@pytest.mark.proves("X15")
async def test_of_two_browsers_on_one_call_one_wins_and_the_other_is_told(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path)
    first, second = await signed_in("ana"), await signed_in("ana")
    await opened(first, name)
    await opened(second, name)
    await first.get_by_role("button", name="Deny").click()
    await first.wait_for_url("**/console?told=denied")

    await expect(second.locator("#meanwhile")).to_contain_text(re.compile(r"ana\.\w+ denied it"))
    await expect(second.get_by_role("heading", name="Edit: decided")).to_be_visible()
    await expect(second.get_by_role("button", name="Allow", exact=True)).to_have_count(0)
    await expect(second.locator(".made")).to_contain_text(re.compile(r"ana\.\w+ denied it"))
    assert (tmp_path / "greeting.txt").read_text() == "hello world\n"


async def test_a_form_that_comes_too_late_is_told_in_its_place_who_was_first(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana", scripts=False)
    await page.goto(f"{served.url}/console/s/lamp/{name}/call?id=edit-7")
    async with served.client() as ana:
        denied = {"call_id": "edit-7", "decision": "deny", "reason": "Not now"}
        assert (await ana.post(f"/v1/sessions/lamp/{name}/decisions", json=denied)).status_code == 200
    await page.get_by_role("button", name="Allow", exact=True).click()

    await expect(page.get_by_role("alert").first).to_have_text("Your decision came second and changed nothing.")
    await expect(page.locator("main")).to_contain_text("The model reads the denial and goes on")
    await expect(page.locator(".made")).to_contain_text(re.compile(r"ana\.\w+ denied it"))
    await expect(page.locator(".made")).to_contain_text("Not now")
    assert (tmp_path / "greeting.txt").read_text() == "hello world\n"


async def test_what_has_changed_since_it_was_shown_is_not_allowed(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await opened(page, name)
    await page.locator('input[name="digest"]').first.evaluate("one => { one.value = 'f'.repeat(64) }")
    await page.get_by_role("button", name="Allow", exact=True).click()

    await expect(page.locator(".problem").first).to_contain_text("has changed since that digest was taken")
    await expect(page.get_by_role("button", name="Allow", exact=True)).to_be_enabled()
    assert (tmp_path / "greeting.txt").read_text() == "hello world\n"


async def test_a_file_that_has_changed_since_makes_another_question_of_it(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await opened(page, name)
    (tmp_path / "greeting.txt").write_text("hello wide world\n")
    async with page.expect_response(lambda answer: answer.request.method == "POST"):
        await page.get_by_role("button", name="Allow", exact=True).click()

    async def asks_again() -> bool:
        await page.goto(f"{served.url}/console/s/lamp/{name}/call?id=edit-7")
        return "has changed since the call was decided on" in await page.locator("main").inner_text()

    await until(asks_again)
    await expect(page.locator(".diff .added")).to_have_text("+hello wide moon")
    assert (tmp_path / "greeting.txt").read_text() == "hello wide world\n"


async def test_a_command_is_shown_with_what_it_touches_and_what_nobody_can_judge(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    bash = {"id": "b-1", "name": "Bash", "input": {"command": "cat /etc/hosts > x; $(y)"}}
    name = await waiting(served, tmp_path, {"tool_calls": [bash]})
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/s/lamp/{name}/call?id=b-1")

    await expect(page.locator(".finding.warning")).to_contain_text("can't be judged without running it")
    await expect(page.locator(".finding", has_text="touches")).to_contain_text(f"write {tmp_path}/x")


async def test_a_call_that_wants_a_signature_says_so(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    name = await waiting(served, tmp_path, more='[permission]\napprovals = "signed"')
    page = await signed_in("ana")
    await opened(page, name)

    await expect(page.locator("article")).to_contain_text("Only a signed decision counts here")


async def test_nobody_sees_what_is_anothers(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    name = await waiting(served, tmp_path)
    bob = await signed_in("bob")
    inbox = await bob.locator("#waiting").inner_text()
    answers = [
        await bob.goto(f"{served.url}/console/s/lamp/{name}{below}") for below in ("", "/call?id=edit-7", "/about")
    ]

    assert [answer.status for answer in answers if answer is not None] == [404, 404, 404]
    assert "greeting" not in await bob.content()
    assert inbox.strip().startswith("Nothing waits for anybody. Your token sees the sessions of")


async def test_a_sentence_that_is_typed_beside_the_field_allows_nothing(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await opened(page, name)
    focused = await page.evaluate("""() => [..."x a bear, a harbour"].filter((key) => {
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        return document.activeElement.tagName === "BUTTON";
    })""")

    assert focused == []


async def test_two_people_approve_and_the_first_is_told_that_another_has_to(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    name = await waiting(served, tmp_path, more="[permission.tools.Edit]\napprovers = 2")
    page = await signed_in("ana")
    await opened(page, name)
    await page.keyboard.press("a")
    await page.keyboard.press("Enter")

    await expect(page.locator(".told")).to_have_text("Your approval counts; another person's has to follow.")
    await expect(page.locator("article")).to_contain_text("Approvals: 1 of 2 (ana.")
    assert (tmp_path / "greeting.txt").read_text() == "hello world\n"


async def test_suggested_rules_are_taken_along(served: Address, signed_in: SignedIn, tmp_path: Path) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("ana")
    await opened(page, name)
    await expect(page.locator('[data-key="r"]')).to_contain_text("from now on Edit(")
    await page.keyboard.press("r")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/console?told=allowed")

    async with served.client() as ana:
        rules = (await ana.get(f"/v1/sessions/lamp/{name}/rules")).json()["rules"]
    assert [rule["tool_name"] for rule in rules] == ["Edit"]


TWO_EDITS: dict[str, object] = {
    "tool_calls": [
        *WANTS_TO_EDIT["tool_calls"],
        {
            "id": "edit-8",
            "name": "Edit",
            "input": {"file_path": "farewell.txt", "old_string": "world", "new_string": "moon"},
        },
    ]
}


@pytest.mark.proves("X15")
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
@pytest.mark.parametrize("width", [390, 800, 1440])
async def test_a_rule_says_next_to_its_button_where_it_counts_and_what_it_would_have_let_pass(
    served: Address, signed_in: SignedIn, tmp_path: Path, width: int, scripts: bool
) -> None:
    (tmp_path / "farewell.txt").write_text("good bye, world\n")
    name = await waiting(served, tmp_path, TWO_EDITS, {"text": "Done."})
    page = await signed_in("ana", scripts=scripts)
    await page.set_viewport_size({"width": width, "height": 844})
    await page.goto(f"{served.url}/console/s/lamp/{name}/call?id=edit-7")
    line = page.locator(".bar summary")
    button = page.get_by_role("button", name="from now on Edit(")
    box, above = await line.bounding_box(), await button.bounding_box()
    assert box is not None
    assert above is not None
    folded = await page.locator("#would-pass").is_visible()
    await line.click()

    await expect(line).to_have_text(
        f"The rule counts in this session only, in its workspace {tmp_path}, until somebody revokes it. "
        "It would have allowed the last other call of Edit."
    )
    await expect(page.locator("#would-pass li")).to_contain_text("farewell.txt")
    await expect(page.locator("#would-pass")).to_be_in_viewport()
    assert folded is False
    assert above["y"] + above["height"] <= box["y"] < above["y"] + above["height"] + 24, "it stands below its button"
    assert box["y"] + box["height"] < 844, "it is in view"
    assert await button.get_attribute("aria-describedby") == await line.locator("[id]").get_attribute("id")


async def test_who_may_not_accept_a_rule_still_reads_what_it_would_have_let_pass(
    served: Address, signed_in: SignedIn, tmp_path: Path, people: dict[str, str]
) -> None:
    (tmp_path / "farewell.txt").write_text("good bye, world\n")
    name = await waiting(served, tmp_path, TWO_EDITS, {"text": "Done."})
    page = await signed_in("eve")
    await page.goto(f"{served.url}/console/s/lamp/{name}/call?id=edit-7&user={people['ana']}")

    await expect(page.locator("section#would-pass li")).to_contain_text("farewell.txt")
    await expect(page.locator(".terms")).to_have_count(0)


@pytest.mark.proves("X15")
async def test_rules_of_one_command_say_what_each_alone_would_have_let_pass_and_a_copy_keeps_them(
    served: Address, signed_in: SignedIn, tmp_path: Path
) -> None:
    lines = ("mkdir attic && touch attic/lamp", "touch attic/lamp", "touch attic/lamp && true")
    runs = [{"id": f"run-{n}", "name": "Bash", "input": {"command": line}} for n, line in enumerate(lines)]
    wants: dict[str, object] = {"tool_calls": runs}
    name = await waiting(served, tmp_path, wants, {"text": "Done."})
    page = await signed_in("ana")
    await page.goto(f"{served.url}/console/s/lamp/{name}/call?id=run-0")
    line = await page.locator(".bar summary").inner_text()
    await page.keyboard.press("r")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/console?told=allowed")
    async with served.client() as ana:
        made = await ana.post(f"/v1/sessions/lamp/{name}/copies", json={"session": f"{name}-again"})
        assert made.status_code == 201, made.text
        rules = (await ana.get(f"/v1/sessions/lamp/{name}-again/rules")).json()["rules"]

    assert line.startswith("The rules count in this session only, in its workspace ")
    assert line.endswith(
        "until somebody revokes them. "
        "Of the last 2 other calls of Bash the rules, each alone, would have allowed none and 2."
    )
    assert [rule["rule_content"] for rule in rules] == ["mkdir attic", "touch attic/lamp"]


async def test_somebody_who_may_only_look_has_no_buttons_and_forged_forms_do_nothing(
    served: Address, signed_in: SignedIn, tmp_path: Path, people: dict[str, str]
) -> None:
    name = await waiting(served, tmp_path)
    page = await signed_in("eve")
    await page.goto(f"{served.url}/console/s/lamp/{name}/call?id=edit-7&user={people['ana']}")
    await expect(page.get_by_role("heading", name="Edit greeting.txt")).to_be_visible()
    key = await page.locator('input[name="form_key"]').first.get_attribute("value")
    cookies = {one.get("name", ""): one.get("value", "") for one in await page.context.cookies()}
    form = {"form_key": key or "", "call_id": "edit-7", "decision": "deny"}
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, cookies=cookies) as client:
        forged = await client.post(
            f"/console/s/lamp/{name}/decide?user={people['ana']}", data=form, headers={"Origin": served.url}
        )

    assert await page.locator(".decide").count() == 0
    assert forged.status_code == 403
    assert "scope &#39;approve&#39;" in forged.text
