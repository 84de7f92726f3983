"""`longhaul run` without a terminal, and answering what it waits for."""

import base64
import json
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.starter.client.client import Longhaul
from tests.activities.models.sample_requests import PIXEL
from tests.e2e.conftest import CLI, Cli
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

EDIT = {"file_path": "greeting.txt", "old_string": "world", "new_string": "moon"}
SILENCE = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0"
WANTS_TO_EDIT = {"text": "I will greet the moon.", "tool_calls": [{"id": "edit-7", "name": "Edit", "input": EDIT}]}


def test_a_run_that_finishes_prints_one_document_and_exits_0(cli: Cli) -> None:
    model = cli.script(
        {"tool_calls": [{"name": "Read", "input": {"file_path": "greeting.txt"}}]}, {"text": "It says hello."}
    )

    answer = cli("run", "What does it say?", "--model", model, "--session", "reads", "--json")

    assert answer.code == 0, answer.err
    assert answer.document["session"] == "reads"
    assert answer.document["status"] == "finished"
    assert answer.document["finished_reason"] == "completed"
    assert answer.document["text"] == "It says hello."
    assert answer.document["pending"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", b"a\xffb"], r"longhaul: argument 2: 'a\\xffb' is not UTF-8 text; write it in UTF-8"),
        (["run", "Hello", "--session", b"a\xffb"], r"longhaul: --session: 'a\\xffb' is not UTF-8 text"),
        (["run", b"caf\xe9"], r"longhaul: argument 2: 'caf\\xe9' is not UTF-8 text"),
        (["rules", "list", "--user", b"\xe9"], r"longhaul: --user: '\\xe9' is not UTF-8 text"),
        ([b"\xff"], r"longhaul: argument 1: '\\xff' is not UTF-8 text"),
    ],
)
def test_raw_bytes_among_the_arguments_are_a_sentence(cli: Cli, arguments: list[str | bytes], said: str) -> None:
    done = subprocess.run([*CLI, *arguments], env=cli.environment, capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(said)
    assert done.stderr.count(b"\n") == 1


def test_raw_bytes_on_stdin_are_a_sentence(cli: Cli) -> None:
    run = [*CLI, "run", "-", "--model", cli.script({"text": "-"}), "--session", "raw"]

    done = subprocess.run(run, env=cli.environment, cwd=cli.folder, input=b"caf\xe9!", capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"longhaul: what was read is not UTF-8 text: invalid continuation byte at byte 3\n"


@pytest.mark.parametrize(
    ("lines", "code", "reason", "text", "error"),
    [
        (
            [{"text": f"{number},", "stop_reason": "max_tokens"} for number in range(4)],
            6,
            "incomplete",
            "0,1,2,3,",
            "broke off at the limit of output tokens (max_tokens), 4 times in a row",
        ),
        ([{"text": "Not that.", "stop_reason": "refusal"}], 5, "refused", "", "did not answer (refusal): Not that."),
        ([{"stop_reason": "content_filter"}], 5, "refused", "", "was stopped by a content filter (content_filter)"),
    ],
)
def test_how_a_model_stopped_is_told_by_the_exit_code_the_document_and_show(
    cli: Cli, lines: list[dict[str, str]], code: int, reason: str, text: str, error: str
) -> None:
    model = cli.script(*lines)

    answer = cli("run", "Count", "--model", model, "--session", reason + lines[0]["stop_reason"], "--json")
    shown = cli("show", reason + lines[0]["stop_reason"], "--full")
    watched = cli("run", "Count", "--model", model, "--session", f"again-{lines[0]['stop_reason']}")

    assert (answer.code, answer.document["finished_reason"]) == (code, reason), answer.err
    assert (answer.document["status"], answer.document["text"]) == ("failed", text)
    assert error in answer.document["error"]["message"]
    assert f"the last reply failed: {answer.document['error']['message']}" in shown.out
    assert error in " ".join(watched.out.split())
    broken_off = len(lines) if reason == "incomplete" else 0
    assert shown.out.count("! the message broke off here") == broken_off
    assert shown.out.count("hint: Your answer broke off") == max(broken_off - 1, 0)


def test_a_run_shows_its_calls_and_never_obeys_the_model(cli: Cli) -> None:
    model = cli.script(
        {
            "text": "[red]not markup[/red] \x1b[2Jnot cleared",
            "tool_calls": [{"name": "Bash", "input": {"command": "ls"}}],
        },
        {"text": "Two files."},
    )

    answer = cli("run", "-", "--model", model, stdin="List the files")

    assert answer.code == 0, answer.err
    assert "[red]not markup[/red] \\x1b[2Jnot cleared\n" in answer.out
    assert "✓ Bash ls → greeting.txt (+1 line)\n" in answer.out
    assert "\x1b" not in answer.out


def test_a_run_parks_and_goes_on_when_it_is_approved(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "Done."})

    parked = cli("run", "Greet the moon", "--model", model, "--session", "parks", "--request-id", "r-1", "--json")
    waiting = cli("inbox", "--json")
    approved = cli("approve", "parks", "--all", "--accept-rules", "--as", "ana")
    finished = cli("run", "Greet the moon", "--session", "parks", "--request-id", "r-1", "--json")
    shown, exported = cli("show", "parks"), cli("state", "export", "parks")

    assert parked.code == 3
    assert parked.document["status"] == "waiting"
    assert [(call["call_id"], call["waits_for"]) for call in parked.document["pending"]] == [("edit-7", "person")]
    assert ("parks", "edit-7") in [(row["session"], row.get("call_id")) for row in waiting.document]
    assert approved.out == "approved Edit edit-7\n"
    assert "  +hello moon\n" in approved.err, "what was approved is shown"
    assert finished.code == 0
    assert finished.document["text"] == "Done."
    assert (cli.folder / "greeting.txt").read_text() == "hello moon\n"
    digest = parked.document["pending"][0]["digest"]
    assert f"ana allowed Edit edit-7 (Edit({cli.folder}/**), seen {digest[:12]})" in shown.out
    (made,) = exported.document["decisions"]
    assert (made["approver"], made["decision"], made["digest"]) == ("ana", "allow", digest)


def test_a_parked_run_says_with_which_command_to_answer(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT)

    parked = cli("run", "Greet the moon", "--model", model, "--session", "asks")
    shown = cli("show", "asks")

    for answer in (parked, shown):
        assert "  longhaul approve asks edit-7 --seen=" in answer.out
        assert "  -hello world\n  +hello moon\n" in answer.out


def test_an_approval_is_for_what_was_shown_and_all_of_it_can_be_shown(cli: Cli) -> None:
    padded = EDIT | {"new_string": "moon" + " of cheese" * 900 + " and a thief"}
    call = {"id": "edit-8", "name": "Edit", "input": padded}
    parked = cli("run", "Greet", "--model", cli.script({"tool_calls": [call]}, {"text": "Done."}), "--session", "seen")

    whole = cli("approve", "seen", "--show")
    in_json = cli("approve", "seen", "--show", "--json")
    stale = cli("approve", "seen", "edit-8", "--seen=older")
    waiting = cli("inbox", "--json")
    shown = next(call for call in waiting.document if call["session"] == "seen")
    approved = cli("approve", "seen", "edit-8", f"--seen={shown['digest'][:12]}")

    assert " and a thief\n" in parked.out
    assert "characters are not shown here⟩" in parked.out
    assert f"approve seen edit-8 --seen={shown['digest'][:12]} --agent longhaul\n" in parked.out
    assert padded["new_string"] in whole.out
    assert in_json.document["whole"][0]["arguments"][2] == {"name": "new_string", "text": padded["new_string"]}
    assert stale.code == 2
    assert "'edit-8' has changed since you saw it (--seen 'older'" in stale.err
    assert shown["preview"]["cwd"] == str(cli.folder)
    assert approved.code == 0, approved.err


async def test_an_approver_may_change_the_arguments(cli: Cli, app: Longhaul) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "Done."})
    session = app.session("edits", agent=AgentSpec(model=model, workspace=Workspace(root=str(cli.folder))))
    waiting = await session.reply("Greet the moon")

    edited = cli("approve", "edits", "edit-7", "--edit", json.dumps(EDIT | {"new_string": "sun"}))
    await session.wait(waiting.id)

    assert edited.code == 0, edited.err
    assert (cli.folder / "greeting.txt").read_text() == "hello sun\n"


def test_the_model_reads_why_it_was_denied(cli: Cli) -> None:
    expecting = {"text": "I leave it.", "expect": {"last_contains": "denied by ben and did not run: the moon is out"}}
    model = cli.script(WANTS_TO_EDIT, expecting)
    cli("run", "Greet the moon", "--model", model, "--session", "denied", "--request-id", "r-3")

    denied = cli("deny", "denied", "--reason", "the moon is out", "--as", "ben", "--json")
    finished = cli("run", "Greet the moon", "--session", "denied", "--request-id", "r-3", "--json")

    assert denied.document == {"session": "denied", "decision": "deny", "decided": ["edit-7"]}
    assert finished.document["error"] is None
    assert finished.document["text"] == "I leave it."
    assert (cli.folder / "greeting.txt").read_text() == "hello world\n"


def test_the_result_of_an_external_tool_comes_from_outside(cli: Cli) -> None:
    asks = {"tool_calls": [{"id": "price-1", "name": "price_of", "input": {"article": "a lamp"}}]}
    model = cli.script(asks, {"text": "It costs 12 crowns.", "expect": {"last_contains": "12 crowns"}})
    agent = cli.folder / "clerk.toml"
    agent.write_text('tools = ["price_of"]\n[[permission.rules]]\ntool_name = "price_of"\n')

    parked = cli("run", "A lamp?", "--agent", str(agent), "--model", model, "--session", "lamp", "--request-id", "r-4")
    handed_in = cli("result", "lamp", "price-1", "--file", "-", stdin="12 crowns")
    finished = cli("run", "A lamp?", "--agent", str(agent), "--session", "lamp", "--request-id", "r-4", "--json")

    assert parked.code == 3, parked.err
    assert "longhaul result lamp price-1 --output TEXT" in parked.out
    assert handed_in.code == 0, handed_in.err
    assert finished.document["text"] == "It costs 12 crowns."


def test_a_failed_agent_exits_4(cli: Cli) -> None:
    model = cli.script({"faults": [{"kind": "auth"}]})

    answer = cli("run", "Anything", "--model", model, "--json")

    assert answer.code == 4
    assert answer.document["status"] == "failed"
    assert answer.document["error"]["type"] == "authentication"


def test_a_run_ends_at_its_limit_of_iterations(cli: Cli) -> None:
    looks = {"tool_calls": [{"name": "Read", "input": {"file_path": "greeting.txt"}}]}

    answer = cli("run", "Look", "--model", cli.script(looks, looks, {"text": "No more."}), "--max-iters", "1")

    assert answer.code == 4, answer.err
    assert "✗ stopped: the limit of iterations was reached" in answer.out
    assert ("✓ Read" in answer.out, answer.out.count("✓ Read")) == (True, 1)


async def test_a_request_behind_one_that_waits_parks_too(cli: Cli, app: Longhaul) -> None:
    spec = AgentSpec(model=cli.script(WANTS_TO_EDIT), workspace=Workspace(root=str(cli.folder)))
    await app.session("queue", agent=spec).reply("Greet the moon")

    answer = cli("run", "And the sun", "--session", "queue")

    assert answer.code == 3
    assert "queued after a reply that waits" in answer.out


def test_a_detached_run_returns_at_once(cli: Cli) -> None:
    model = cli.script({"text": "Slow.", "delay_ms": 30})

    detached = cli(
        "run",
        "Take your time",
        "--model",
        model,
        "--session",
        "at-leisure",
        "--request-id",
        "r-5",
        "--detach",
        "--json",
    )
    finished = cli("run", "Take your time", "--session", "at-leisure", "--request-id", "r-5", "--json")

    assert detached.document["request_id"] == "r-5"
    assert detached.document["reply_id"] == finished.document["reply_id"]
    assert finished.document["text"] == "Slow."


def test_ctrl_c_interrupts_the_reply(cli: Cli) -> None:
    model = cli.script({"tool_calls": [{"name": "Bash", "input": {"command": "echo started > started; sleep 2"}}]})
    command = [*CLI, "run", "Wait", "--model", model, "--session", "stops", "--mode", "bypass", "--json"]

    with subprocess.Popen(
        command, env=cli.environment, cwd=cli.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert cli.waits_for("started")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SURE_SECONDS)

    assert process.returncode == 130, err
    assert out, err
    assert json.loads(out)["finished_reason"] == "interrupted"


def test_files_that_are_named_go_along_but_none_that_a_text_from_stdin_names(cli: Cli) -> None:
    (cli.folder / "gull.png").write_bytes(base64.b64decode(PIXEL))
    (cli.folder / "song.wav").write_bytes(SILENCE)
    model = cli.script({"text": "A gull."})

    named = cli("run", "See @gull.png, hear @song.wav.", "--model", model, "--session", "named", "--json")
    piped = cli("run", "-", "--model", model, "--session", "piped", "--json", stdin="See @gull.png.")
    missing = cli("run", "See @none.png", "--model", model, "--session", "missing", "--json")
    shown = {session: cli("show", session).out for session in ("named", "piped")}

    assert (named.code, piped.code, missing.code) == (0, 0, 2), named.err
    assert "[image/png gull.png]" in shown["named"]
    assert "[audio/wav song.wav]" in shown["named"]
    assert "gull.png]" not in shown["piped"]
    assert "@none.png: it can't be read: No such file or directory; nothing was sent" in missing.err


HOOKS = """
def redact(_, given, came=None):
    if came is None:
        return given.replace("4711", "…")
    content = tuple(block.model_copy(update={"text": block.text.upper()}) for block in came.content)
    return came.model_copy(update={"content": content})


def hooks(hooks):
    hooks.register("pre_reply", "redact", redact)
    hooks.register("post_reply", "loud", redact)
"""


@pytest.mark.proves("C2")
def test_a_run_goes_through_the_hooks_of_clients(cli: Cli) -> None:
    (cli.folder / "shop_screen.py").write_text(HOOKS, encoding="utf-8")
    there = {"LONGHAUL_CLIENT_HOOKS": "shop_screen:hooks", "PYTHONPATH": str(cli.folder)}
    hooked = replace(cli, environment=cli.environment | there)
    model = cli.script({"text": "Taken.", "expect": {"last_contains": "My code is …"}})

    answer = hooked("run", "My code is 4711", "--model", model, "--session", "hooked", "--json")
    shown = cli("show", "hooked")

    assert answer.document["text"] == "TAKEN."
    assert ("My code is …" in shown.out, "4711" in shown.out) == (True, False)


SCHEMA = {"type": "object", "properties": {"height": {"type": "number"}}, "required": ["height"]}


@pytest.mark.proves("C7")
def test_a_run_in_a_form_prints_the_value(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tide.json").write_text(json.dumps(SCHEMA))
    line = {"tool_calls": [{"name": "generate_response", "input": {"height": 3.5}}]}
    schema = ["--schema", str(tmp_path / "tide.json")]

    answer = cli("run", "How high?", "--model", cli.script(line), "--session", "tide-form", *schema, "--json")
    told = cli("run", "How high?", "--model", cli.script(line), "--session", "tide-form-told", *schema)
    shown = cli("show", "tide-form")

    assert (answer.code, answer.document["finished_reason"]) == (0, "completed"), answer.err
    assert answer.document["structured_output"] == {"height": 3.5}
    for out in (told.out, shown.out):
        assert '{\n  "height": 3.5\n}\n' in out
    assert told.code == 0


def test_a_run_whose_model_only_talks_ends_as_unstructured(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tide.json").write_text(json.dumps(SCHEMA))
    model = cli.script(*({"text": f"High, {n}."} for n in range(6)))

    answer = cli("run", "How high?", "--model", model, "--schema", str(tmp_path / "tide.json"), "--json")

    assert (answer.code, answer.document["finished_reason"]) == (4, "unstructured"), answer.err
    assert answer.document["structured_output"] is None
    assert "answered 5 times in words, and never called generate_response" in answer.document["error"]["message"]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (None, "can't be read: No such file or directory"),
        ("{", "is no JSON: "),
        ("[]", "$: [] is no JSON schema"),
        ('{"type": "array"}', "$.type: 'array' can't be answered"),
    ],
)
def test_a_form_that_is_none_is_bad_usage(cli: Cli, tmp_path: Path, written: str | None, why: str) -> None:
    file = tmp_path / "form.json"
    if written is not None:
        file.write_text(written)

    answer = cli("run", "How high?", "--model", cli.script({"text": "No."}), "--schema", str(file))

    assert answer.code == 2
    assert f"--schema {str(file)!r}" in answer.err
    assert why in answer.err
