"""A secret that a model or a person writes: no view shows it, the tool gets what was meant, no model hears it."""

import base64
import json
from pathlib import Path

import pytest

from longhaul.activities.masker import Masker
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, Msg, TextBlock, UserMsg
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.workflows.all_views import command_views, unlisted, views
from tests.workflows.conftest import Stage
from tests.workflows.incarnation.test_flat_history import payload_texts
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server

KEY = 'gate "9c41" \\sésame+7'
OTHER = "never given 4711"
MASKER = Masker({"GATE_KEY": KEY, "OTHER": OTHER})
MARK = "[secret GATE_KEY]"
ESCAPED = '{"to": "Ana", "text": "' + "".join(f"\\u{ord(char):04x}" for char in KEY) + '"}'


@pytest.fixture
def keyed(unserved: Stage, tmp_path: Path) -> Stage:
    """A stage whose workers know two secrets."""
    file = tmp_path / "secrets.toml"
    file.write_text(f"GATE_KEY = {json.dumps(KEY, ensure_ascii=False)}\nOTHER = '{OTHER}'\n")
    file.chmod(0o600)
    unserved.settings = unserved.settings.model_copy(update={"secrets_file": file})
    return unserved


def told_in(shown: dict[str, str]) -> list[str]:
    """Names of the views that hold a secret."""
    return [name for name, text in shown.items() if MASKER.found(text)]


async def text_of(session: Session) -> list[str]:
    return [each.model_dump_json() async for each in session.transcript()]


@pytest.mark.proves("D9")
def test_each_view_stands_in_the_list() -> None:
    assert unlisted() == {"queries": set(), "commands": set(), "routes": set()}


async def answered(stage: Stage, session: Session, reply: Msg) -> tuple[Msg, list[str]]:
    """The reply when all that waits was allowed, and the views that held a secret on the way."""
    shows = told_in(await views(stage, session, reply.id))
    while waiting := await session.pending():
        await session.confirm(waiting[0], allow=True)
        reply = await session.wait(reply.id)
        shows += told_in(await views(stage, session, reply.id))
    return reply, shows


@pytest.mark.proves("D9")
@pytest.mark.parametrize("mark", [False, True], ids=["kept beside", "marks alone"])
async def test_no_view_shows_a_secret_that_a_model_writes_and_the_tool_gets_it(keyed: Stage, *, mark: bool) -> None:
    session = keyed.session(
        {"text": "I send it.", "tool_calls": [{"name": "send", "input": {"to": "Ana", "text": f"in: {KEY}"}}]},
        {"tool_calls": [{"name": "send", "input": ESCAPED}], "chunk_chars": 3},
        calls("Bash", command=f"touch seen; cat > kept <<'END'\n{KEY}\nEND\n"),
        calls("Write", file_path="deep.json", content=json.dumps({"key": [KEY]}, ensure_ascii=False)),
        calls("Bash", command=f"touch seen; echo {base64.b64encode(KEY.encode()).decode()} | base64 -d > decoded"),
        {"text": "All done."},
        tools=["send", "Bash", "Write"],
        secrets={"allow": ["GATE_KEY"], "mark": mark},
    )
    async with keyed.another_worker():
        reply = await session.reply("Go")
        (asked,) = await session.pending()
        first = await views(keyed, session, reply.id)
        reply, shows = await answered(keyed, session, reply)
        payloads = await payload_texts(keyed.handle(session))

    assert (reply.error, reply.get_text_content(), shows) == (None, "All done.", [])
    assert json.loads(asked.input) == {"to": "Ana", "text": f"in: {MARK}"}
    for name in ("query pending", "client transcript", "client trajectory", "query metadata", "query events"):
        assert "secret GATE_KEY" in first[name], name
    sent, escaped, *_ = [result.get_text() for result in reply.get_tool_results()]
    # Repeated by the tool, and masked in what it says.
    assert (MARK in sent, MARK in escaped) == (True, True)
    assert (keyed.workspace / "kept").read_text() == f"{KEY}\n"
    # In other spellings it can't be put back: what holds it so runs where it was kept beside, and else is refused.
    assert [(keyed.workspace / name).exists() for name in ("deep.json", "decoded")] == [not mark] * 2
    assert bool([text for text in payloads if MASKER.found(text)]) != mark
    assert bool(held_below(keyed.settings.data_dir)) != mark


@pytest.mark.proves("D9")
async def test_no_command_shows_a_secret_that_somebody_writes(keyed: Stage) -> None:
    session = keyed.session(
        calls("send", to="Ana", text=f"in: {KEY}"), tools=["send"], permission={"rules": [{"tool_name": "Bash"}]}
    )
    async with keyed.another_worker():
        await session.reply(f"Send {KEY}")

        async def is_titled_again() -> bool:
            return [card.title for card in await keyed.app.sessions(session_id=session.id)] == [f"Send {MARK}"]

        await until(is_titled_again)  # the server's index is a moment late
        shown = await command_views(keyed, session)

    assert told_in(shown) == []
    silent = {name for name, text in shown.items() if "secret GATE_KEY" not in text}
    assert {name.split()[1] for name in silent} == {"rules"}


async def test_a_call_that_is_denied_or_runs_elsewhere_shows_marks(keyed: Stage) -> None:
    session = keyed.session(
        calls("Bash", command=f"touch '{KEY}'"),
        calls("courier", parcel=f"a box for {KEY}"),
        {"text": "All done."},
        tools=["Bash", "courier"],
        permission={"rules": [{"tool_name": "courier"}]},
    )
    async with keyed.another_worker():
        reply = await session.reply("Go")
        (touch,) = await session.pending()
        shows = told_in(await views(keyed, session, reply.id))
        await session.confirm(touch, allow=False, reason="not that file")
        reply = await session.wait(reply.id)
        (parcel,) = await session.pending()
        shows += told_in(await views(keyed, session, reply.id))
        await session.external_result(parcel, "brought")
        reply = await session.wait(reply.id)
        shows += told_in(await views(keyed, session, reply.id))

    assert (reply.get_text_content(), shows) == ("All done.", [])
    assert (touch.suggested_rules, "the value of the secret GATE_KEY" in touch.reason) == ((), True)
    assert json.loads(parcel.input) == {"parcel": f"a box for {MARK}"}


@pytest.mark.proves("D9")
@pytest.mark.parametrize("mark", [False, True], ids=["kept beside", "marks alone"])
async def test_what_an_approver_writes_into_a_call_is_shown_with_marks(keyed: Stage, *, mark: bool) -> None:
    session = keyed.session(
        calls("Bash", command="touch nothing"),
        {"text": "All done."},
        tools=["Bash"],
        secrets={"allow": ["GATE_KEY"], "mark": mark},
    )
    async with keyed.another_worker():
        reply = await session.reply("Go")
        (call,) = await session.pending()
        edit = {"command": f"touch nothing; cat > kept <<'END'\n{KEY}\nEND\n"}
        await session.confirm(call, allow=True, input=edit)
        reply = await session.wait(reply.id)
        reply, shows = await answered(keyed, session, reply)
        events = (await session.events()).events

    assert (reply.get_text_content(), shows) == ("All done.", [])
    assert (keyed.workspace / "kept").read_text() == f"{KEY}\n"
    (edited,) = [event for event in events if event.name == "arguments_edited"]
    assert json.loads(edited.value["input"]) == {"command": edit["command"].replace(KEY, MARK)}


@pytest.mark.proves("D9")
async def test_where_marks_stand_for_secrets_only_who_is_given_one_gets_it(keyed: Stage) -> None:
    session = keyed.session(
        calls("Write", file_path="kept", content=f"{KEY}\n{OTHER}\n[secret OTHER]\n{MARK}\n"),
        {"text": "All done."},
        tools=["Write"],
        secrets={"tools": {"Write": ["GATE_KEY"], "Bash": ["OTHER"]}, "mark": True},
        permission={"mode": "bypass"},
    )
    async with keyed.another_worker():
        reply = await session.reply("Go")

    assert reply.get_text_content() == "All done."
    assert (keyed.workspace / "kept").read_text() == f"{KEY}\n[secret OTHER]\n[secret OTHER]\n{KEY}\n"


async def test_a_call_of_unknown_outcome_shows_marks_and_its_probe_gets_what_ran(keyed: Stage, tmp_path: Path) -> None:
    book = tmp_path / f"book of {OTHER}"
    session = keyed.session(
        calls("post", text="in", book=str(book)),
        {"text": "All done."},
        tools=["post"],
        permission={"mode": "bypass"},
        on_unknown_outcome="ask",
    )
    async with keyed.another_worker():
        reply = await session.reply("Go")
        shows = told_in(await views(keyed, session, reply.id))
        (unknown_outcome,) = [event for event in (await session.events()).events if event.name == "outcome_probed"]

    assert (reply.get_text_content(), shows) == ("All done.", [])
    assert unknown_outcome.value == {"finding": "happened", "detail": "the book says 'in'"}


async def test_rules_do_not_pass_what_a_secret_hides_from_them(keyed: Stage) -> None:
    (keyed.workspace / OTHER).write_text("an operation")
    session = keyed.session(
        calls("Bash", command=f"cat '{OTHER}'"),
        calls("Read", file_path=OTHER),
        {"text": "All done."},
        tools=["Bash", "Read"],
        permission={"mode": "bypass", "rules": [{"tool_name": "Read", "rule_content": OTHER, "behavior": "deny"}]},
    )
    async with keyed.another_worker():
        reply = await session.reply("Go")
        waits = list[str]()
        while waiting := await session.pending():
            waits.append(waiting[0].tool)
            await session.confirm(waiting[0], allow=False)
            reply = await session.wait(reply.id)

    assert (waits, reply.get_text_content()) == (["Bash", "Read"], "All done.")


@pytest.mark.proves("D9")
async def test_a_model_never_hears_a_secret_that_a_person_writes(keyed: Stage) -> None:
    session = keyed.session(
        {"text": "I see.", "expect": {"last_contains": f"The key is {MARK}, keep it."}},
        {"text": "And that.", "expect": {"last_contains": f'{{"key": "{MARK}"}}'}},
        {"text": "All done."},
        tools=["send"],
    )
    async with keyed.another_worker():
        reply = await session.reply(f"The key is {KEY}, keep it.")
        shows = told_in(await views(keyed, session, reply.id))
        said = (await text_of(session))[0]
        await session.reply(f'{{"key": {json.dumps(KEY)}}}')
    async with keyed.another_worker():
        # One that has heard nothing yet, and fetches all of it.
        last = await session.reply("And now?")
        shows += told_in(await views(keyed, session, last.id))

    assert ([reply.error, last.error], last.get_text_content(), shows) == ([None, None], "All done.", [])
    assert f"The key is {MARK}, keep it." in said
    assert held_below(keyed.settings.data_dir) == []


@pytest.mark.proves("D9")
async def test_a_text_that_somebody_attaches_is_shown_with_marks(keyed: Stage) -> None:
    session = keyed.session({"text": "I see."}, {"text": "All done."}, tools=["send"])
    attached = [
        attachment(f"key = {KEY}\nport = 7\n", "text/plain"),
        attachment(json.dumps({"key": [KEY]}, ensure_ascii=False), "application/json"),
        attachment("port = 8\n", "text/plain"),
        attachment(f"%PDF-1.7 {OTHER}", "application/pdf"),
    ]
    async with keyed.another_worker():
        reply = await session.reply(UserMsg("user", [TextBlock(text="Read these"), *attached]))
        shows = told_in(await views(keyed, session, reply.id))
        await session.reply("Go on")
        (asked, *_) = [message async for message in session.transcript()]

    texts = [
        base64.b64decode(block.source.data).decode() if isinstance(block.source, Base64Source) else ""
        for block in asked.content
        if isinstance(block, DataBlock)
    ]
    assert (reply.error, shows) == (None, [])
    assert texts == [f"key = {MARK}\nport = 7\n", f'{{"key": ["{MARK}"]}}', "port = 8\n"]
    assert asked.content[-1] == TextBlock(text="[an attachment is left out: it holds [secret OTHER]]")
    assert held_below(keyed.settings.data_dir) == []


def attachment(text: str, media_type: str) -> DataBlock:
    source = Base64Source(data=base64.b64encode(text.encode()).decode(), media_type=media_type)
    return DataBlock(source=source, name="notes")


@pytest.mark.proves("D9")
async def test_reasons_of_decisions_and_refusals_are_shown_with_marks_once_the_model_has_answered(
    keyed: Stage,
) -> None:
    session = keyed.session(
        calls("Bash", command="touch one"),
        calls("Bash", command="touch two"),
        {"text": "All done."},
        tools=["Bash"],
    )
    async with keyed.another_worker():
        reply = await session.reply("Go")
        (one,) = await session.pending()
        await session.confirm(one, allow=False, reason=f"not with {KEY}", approver="ana")
        reply = await session.wait(reply.id)
        shows = told_in(await views(keyed, session, reply.id))
        (two,) = await session.pending()
        with pytest.raises(Refused, match="is not JSON"):
            await session.confirm(two, allow=True, input=f"no JSON: {OTHER}")
        await session.confirm(two, allow=True, rules=True, reason=f"yes, {OTHER}", approver="bo")
        reply = await session.wait(reply.id)
        shows += told_in(await views(keyed, session, reply.id))
        status, state = await session.status(), await session.state()
        told = [event.value for event in (await session.events()).events if event.type == "USER_CONFIRM_RESULT"]

    assert (reply.get_text_content(), shows) == ("All done.", [])
    reasons = [f"not with {MARK}", "yes, [secret OTHER]"]
    assert [made.reason for made in state.decisions] == reasons
    assert [value["decisions"][0]["reason"] for value in told] == reasons
    assert "input: 'no JSON: [secret OTHER]' is not JSON" in status.last_refusals[-1]["reason"]
    assert {rule.reason for rule in state.permission_context.rules} == {"yes, [secret OTHER]"}
    assert f"not with {MARK}" in reply.get_tool_results()[0].get_text()


async def test_why_it_was_paused_and_why_rules_changed_is_shown_with_marks(keyed: Stage) -> None:
    session = keyed.session({"text": "I rest."}, {"text": "All done."})
    async with keyed.another_worker():
        reply = await session.reply("Go")
        await session.pause(why=f"for {KEY}", by="ana")
        await session.rules.change([PermissionRule(tool_name="Bash", behavior=Behavior.DENY)], why=f"since {KEY}")
        await session.resume()
        reply = await session.reply("On")
        shows = told_in(await views(keyed, session, reply.id))
        (rule,) = await session.rules.listed()

    assert (reply.get_text_content(), shows, rule.reason) == ("All done.", [], f"since {MARK}")


def held_below(folder: Path) -> list[str]:
    """Files that hold a secret."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if MASKER.found(path.read_bytes().decode("utf-8", "replace"))]


async def test_a_secret_that_comes_with_an_event_is_shown_with_marks_once_the_model_has_answered(keyed: Stage) -> None:
    session = keyed.session(
        calls("wait_for", event="bell", timeout="30d"),
        {"text": "Heard."},
        tools=["wait_for"],
        secrets={"allow": ["GATE_KEY"]},
    )
    async with keyed.another_worker():
        waiting = await session.reply("Wait for the bell")
        await session.notify("gong", f"kept with {KEY}")
        await session.notify("bell", f"it is {KEY}")
        done = await session.wait(waiting.id)
        shows = told_in(await views(keyed, session, waiting.id))

    assert done.get_text_content() == "Heard."
    assert MARK in done.get_tool_results()[0].get_text()
    assert shows == []
