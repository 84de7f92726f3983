"""The commands that compress a context and move a state, as users type them."""

import json
from uuid import uuid4

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from tests.e2e.conftest import Cli

pytestmark = pytest.mark.server

READS = [{"tool_calls": [{"name": "Bash", "input": {"command": f"seq {n}000 {n}299"}}]} for n in range(1, 7)]


def name(start: str) -> str:
    return f"{start}-{uuid4().hex[:6]}"


async def bricks(cli: Cli, app: Longhaul, user: str | None = None) -> Session:
    """A session that has counted bricks."""
    session = app.session(
        name("bricks"), user=user, agent=AgentSpec(model=cli.script({"text": "Forty."}, {"text": "Red."}))
    )
    await session.reply("How many bricks?")
    return session


async def counted(cli: Cli, app: Longhaul) -> Session:
    """A session with six long results, in a window of 6,000 tokens."""
    script = cli.script(*READS, {"text": "Counted."})
    spec = {
        "model": script,
        "model_config": {"context_length": 6_000},
        "permission": {"mode": "bypass"},
        "tools": ["Bash"],
    }
    session = app.session(name("counted"), agent=AgentSpec.model_validate(spec))
    await session.reply("Count")
    return session


async def test_a_state_goes_out_to_a_file_and_into_another_session(cli: Cli, app: Longhaul) -> None:
    session, other = await bricks(cli, app), name("copy")

    exported = cli("state", "export", session.id, "--out", "bricks.json")
    imported = cli(
        "state", "import", other, "bricks.json", "--model", cli.script({"text": "Hm."}), "--why", "moved", "--json"
    )
    shown = cli("show", other)

    assert (exported.code, exported.out) == (0, "")
    assert imported.document == {"session": other, "imported": True, "messages": 2, "left_out": []}
    assert "> How many bricks?\nForty.\n" in shown.out


async def test_an_import_says_what_is_wrong_where(cli: Cli, app: Longhaul) -> None:
    session = await bricks(cli, app)
    state = json.loads(cli("state", "export", session.id).out)
    state["context"][1]["content"][0]["text"] = 40

    refused = cli("state", "import", session.id, "-", stdin=json.dumps(state))
    no_json = cli("state", "import", session.id, "-", stdin="{")

    assert (refused.code, no_json.code) == (2, 2)
    assert "context[1].content[0].text: Input should be a valid string" in refused.err
    assert "is no JSON" in no_json.err


async def test_places_are_edited_and_the_full_transcript_keeps_what_was_said(cli: Cli, app: Longhaul) -> None:
    session = await bricks(cli, app)

    edited = cli(
        "state", "edit", session.id, "--set", 'context[1].content[0].text="Fifty."', "--set", 'summary="Walls."'
    )
    now, full = cli("show", session.id), cli("show", session.id, "--full")

    assert edited.code == 0, edited.err
    assert "Forty." not in now.out
    assert "Walls." in now.out
    assert "Forty.\n> How many bricks?\nFifty.\n" in full.out
    assert [event.value["by"] != "" for event in (await session.events()).events if event.name == "state_replaced"]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("summary", "has no '='"),
        ("summary=Walls.", "text needs quotes"),
        ('sumary="x"', "there can be no field of that name"),
        ('user_id="eve"', "belongs to the session"),
    ],
)
async def test_an_edit_that_is_none_is_a_sentence(cli: Cli, app: Longhaul, setting: str, sentence: str) -> None:
    session = await bricks(cli, app)

    answer = cli("state", "edit", session.id, "--set", setting)

    assert answer.code == 2
    assert sentence in answer.err
    assert "Traceback" not in answer.err


async def test_a_fork_is_a_session_of_its_own(cli: Cli, app: Longhaul) -> None:
    session, other = await bricks(cli, app), name("fork")
    await session.reply("What colour?")

    forked = cli("state", "fork", session.id, other, "--at", "1", "--json")
    too_far = cli("state", "fork", session.id, name("fork"), "--at", "9")
    taken = cli("state", "fork", session.id, other)

    root = (await session.status()).workspace_root
    files = f"it has a folder of its own, which is empty: files of the session that it is a copy of stay in {root}"
    assert forked.document == {"session": other, "forked_from": session.id, "at": 1, "files": files}
    *said, told = cli("show", other, "--json").document["transcript"]
    assert [message["content"][0]["text"] for message in said] == ["How many bricks?", "Forty."]
    assert told["content"][0]["hint"].startswith("You go on in a copy of this conversation.")
    assert "note: it has a folder of its own, which is empty" in " ".join(cli("show", other).out.split())
    assert (too_far.code, "made 2 model calls" in too_far.err) == (2, True)
    assert (taken.code, "take another name" in taken.err) == (2, True)


async def test_a_session_that_is_over_is_shown_and_copied(cli: Cli, app: Longhaul) -> None:
    session = await bricks(cli, app)
    await app.client.get_workflow_handle(session.workflow_id).terminate("enough")

    shown = cli("show", session.id)
    steps = cli("show", session.id, "--as", "steps")

    assert (shown.code, "> How many bricks?\nForty.\n" in shown.out) == (0, True), shown
    assert (steps.code, "Forty." in steps.out) == (0, True), steps


async def test_a_context_is_compressed_by_hand(cli: Cli, app: Longhaul) -> None:
    session = await counted(cli, app)

    below = cli("compact", session.id, "--trigger", "0.9")
    done = cli("compact", session.id, "--trigger", "0.4", "--reserve", "0.05", "--json")
    head = cli("show", session.id).out
    listed = cli("sessions", "--long").out

    assert (below.code, "nothing to do at" in below.out) == (0, True), below
    assert done.document["compacted"]
    assert done.document["context_tokens"] < done.document["tokens_before"]
    assert "of 6,000 tokens" in head
    assert "compressed 1 time" in head
    assert "all of them: --full" in head
    assert "compressed 1 time" in listed


async def test_shares_that_can_not_be_are_a_sentence(cli: Cli, app: Longhaul) -> None:
    session = await bricks(cli, app)

    answer = cli("compact", session.id, "--trigger", "0.05")

    assert answer.code == 2
    assert "must be below trigger_ratio" in answer.err


async def test_a_session_that_is_not_held_is_not_resumed(cli: Cli, app: Longhaul) -> None:
    session = await bricks(cli, app)

    answer = cli("resume", session.id)

    assert (answer.code, "nothing to resume" in answer.err) == (2, True)


async def test_a_session_is_deleted_by_whoever_says_yes(cli: Cli, app: Longhaul) -> None:
    session = await bricks(cli, app)
    folder = (await session.status()).workspace_root

    unasked = cli("state", "delete", session.id, "--terminate")
    still_open = cli("state", "delete", session.id, "--yes")
    done = cli("state", "delete", session.id, "--terminate", "--yes", "--json", "--agent", "longhaul")
    nothing = cli("state", "delete", name("never"), "--yes")

    assert done.document["workspaces"] == [folder]
    assert (unasked.code, "use --yes" in unasked.err) == (2, True)
    assert (still_open.code, "terminate it to delete it" in still_open.err) == (2, True)
    assert (done.code, done.document["terminated"], done.document["runs"]) == (0, True, 1)
    assert (nothing.code, "there is nothing of session" in nothing.err) == (2, True)


async def test_whoever_deletes_a_session_is_told_which_folder_stays(cli: Cli, app: Longhaul) -> None:
    session = await bricks(cli, app)
    folder = (await session.status()).workspace_root

    done = cli("state", "delete", session.id, "--terminate", "--yes")

    assert (done.code, f"its workspace stays: {folder}" in " ".join(done.out.split())) == (0, True)
    assert folder


@pytest.mark.proves("E6")
async def test_all_states_go_into_a_folder_and_out_of_it_and_one_that_fails_stops_no_other(
    cli: Cli, app: Longhaul
) -> None:
    user = name("mason")  # other tests leave sessions behind that no worker serves any more
    first, second = await bricks(cli, app, user), await bricks(cli, app, user)

    out = cli("state", "export", "--all", "states", "--user", user, "--json")
    mine = {row["file"] for row in out.document if row["session"] in (first.id, second.id)}
    for file in (cli.folder / "states").iterdir():
        if file.name not in mine:
            file.unlink()
    (one,) = [name for name in mine if first.id in name]
    state = json.loads((cli.folder / "states" / one).read_text())
    copied = {**state, "session_id": f"{first.id}-moved"}
    (cli.folder / "states" / "moved.json").write_text(json.dumps(copied))
    (cli.folder / "states" / "broken.json").write_text("{")
    back = cli(
        "state",
        "import",
        "--all",
        "states",
        "--user",
        user,
        "--model",
        cli.script({"text": "Red."}),
        "--json",
        "--why",
        "move",
    )
    shown = cli("state", "import", "--all", "states", "--user", user, "--model", cli.script({"text": "Red."}))

    assert (len(mine), out.code) == (2, 0)
    errors = {row["file"]: row["error"] for row in back.document}
    assert (back.code, shown.code) == (1, 1)
    assert "it is not an export" in errors.pop("broken.json")
    assert set(errors.values()) == {""}
    assert "3 imported, 1 failed" in shown.out
    moved = cli("state", "export", f"{first.id}-moved", "--user", user).document
    assert [block["text"] for message in moved["context"] for block in message["content"]] == [
        "How many bricks?",
        "Forty.",
    ]
    assert cli("state", "export").code == cli("state", "import", "--all", "nowhere").code == 2
