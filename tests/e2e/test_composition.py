"""The composition as people use it: from folders of this machine, which its containers lack."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from longhaul.starter.dev_server.temporal_cli import Say
from tests.conftest import found
from tests.e2e.composition import Answer, Composition, composed
from tests.e2e.test_places import find_walls
from tests.limits import usual
from tests.servers.bubblewrap import find_working_bubblewrap
from tests.servers.redis_server import find_redis

pytestmark = [pytest.mark.server, pytest.mark.redis]

EDIT = {"file_path": "greeting.txt", "old_string": "world", "new_string": "moon"}
ASKS_TO_EDIT = {"text": "I will greet the moon.", "tool_calls": [{"id": "edit-7", "name": "Edit", "input": EDIT}]}
ASKS_AND_ORDERS: tuple[dict[str, Any], ...] = (
    {"tool_calls": [{"id": "price-7", "name": "price_of", "input": {"article": "lamp"}}]},
    {
        "expect": {"last_contains": "lamp: 7 euros, asked with a token of 23 letters"},
        "tool_calls": [{"id": "order-7", "name": "order", "input": {"article": "lamp"}}],
    },
    {"expect": {"last_contains": "lamp is ordered"}, "text": "A lamp is on its way."},
)
LARGE = 1_000_000
LARGER = 4_400_000
"""A reply may have 4.5 MB where blobs are shared, and 1.5 MB where they are not."""
TOO_LARGE = 5_000_000

TALKS = """
import asyncio, json, sys
from longhaul import Longhaul
from longhaul.agent.values.spec.agent_spec import AgentSpec

async def main():
    async with Longhaul.connect() as app:
        spec = AgentSpec.model_validate({"model": sys.argv[1], "model_config": {"context_length": 20_000_000}})
        session = app.session("letters", agent=spec)
        said = await session.reply("a" * int(sys.argv[2]))
        told = await anext(aiter(session.transcript()))
        print(json.dumps([len(said.get_text_content()), len(told.get_text_content())]))

asyncio.run(main())
"""

ASKS = """
import json, sys, urllib.error, urllib.request
method, path, token, body = sys.argv[1:]
request = urllib.request.Request(
    f"http://127.0.0.1:8000{path}", body.encode() or None, {"Content-Type": "application/json"}, method=method
)
if token:
    request.add_header("Authorization", f"Bearer {token}")
try:
    with urllib.request.urlopen(request, timeout=60) as answer:
        print(json.dumps([answer.status, json.load(answer)]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, json.load(error)]))
"""


ASKS_AS = """
import sys, urllib.error, urllib.request
try:
    asked = urllib.request.Request("http://127.0.0.1:8000/v1/sessions", headers={"Host": sys.argv[1]})
    print(urllib.request.urlopen(asked, timeout=60).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


def find_redis_of_the_system(say: Say) -> str:
    """Below /usr, which the containers have."""
    return str(Path(find_redis(say)).resolve())


LINES = """
LONGHAUL_PROJECT={shop}
LONGHAUL_MODEL=scripted:{shop}/http.jsonl
LONGHAUL_TOOLS=shop_tools
LONGHAUL_SECRET_SHOP_TOKEN='seven $letters and more'
LONGHAUL_NOTIFY=maildir:/data/mail?to=ana@shop.example
LONGHAUL_SERVE_HOSTS=agents.shop.example
"""
"""What the user of these tests adds to the example of `.env`."""


def script_of(file: Path, *replies: dict[str, Any]) -> str:
    """The name of a model that gives these."""
    file.write_text("".join(f"{json.dumps(reply)}\n" for reply in replies))
    return f"scripted:{file}"


def agents_of_a_user(folder: Path, model: str) -> Path:
    """A folder with an agent and the module of its tools, as one is mounted."""
    agents = folder / "agents"
    agents.mkdir()
    shutil.copy(Path(__file__).with_name("shop_tools.py"), agents)
    (agents / "shop.toml").write_text(
        f'model = "{model}"\ntools = ["price_of", "order"]\n[secrets.tools]\nprice_of = ["SHOP_TOKEN"]\n'
    )
    return agents


@pytest.fixture(scope="module")
def there(temporal_cli: Path, compose_loader: Path) -> Iterator[Composition]:
    """Not below pytest's folders, so that the test sees that it is the mount that shows the project."""
    found("mount namespaces", find_walls)
    found("bubblewrap", find_working_bubblewrap)
    found("redis", find_redis_of_the_system)
    folder = Path(tempfile.mkdtemp(prefix="longhaul-composition-"))
    shop = folder / "shop"
    shop.mkdir()
    script_of(shop / "http.jsonl", {"text": "Good evening."})
    agents = agents_of_a_user(folder, script_of(shop / "shop.jsonl", *ASKS_AND_ORDERS))
    try:
        with composed(folder, temporal_cli, compose_loader, lines=LINES.format(shop=shop), agents=agents) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shop(there: Composition) -> Path:
    """The project of both sides."""
    return there.folder / "shop"


def script(there: Composition, name: str, *replies: dict[str, Any]) -> str:
    return script_of(shop(there) / f"{name}.jsonl", *replies)


def longhaul(there: Composition, *words: str, cwd: Path | None = None, stdin: str = "") -> Answer:
    """From the project's folder, or from another one."""
    return there.host("-m", "longhaul.starter.cli.main", *words, cwd=cwd or shop(there), stdin=stdin)


def asks(there: Composition, method: str, path: str, token: str = "", body: str = "") -> Any:
    return there.host("-c", ASKS, method, path, token, body, cwd=there.folder).document


def until_said(there: Composition, text: str, session: str, token: str) -> str:
    """Wait for a message, and return all as they were sent."""
    while True:
        status, said = asks(there, "GET", f"{session}/transcript", token)
        assert status == 200, said
        if text in json.dumps(said):
            return json.dumps(said)
        time.sleep(0.2)


def mail_about(there: Composition, word: str) -> str:
    """Wait for a notification to come."""
    folder = there.folder / "volumes" / "data" / "mail" / "new"
    while True:
        for file in folder.glob("*"):
            mail = message_from_bytes(file.read_bytes(), policy=default)
            if word in (text := f"{mail['Subject']}\n{mail.get_content()}"):
                return text
        time.sleep(0.2)


def test_a_job_in_the_project_goes_on_whatever_is_restarted(there: Composition) -> None:
    (shop(there) / "greeting.txt").write_text("hello world\n")
    model = script(there, "edits", ASKS_TO_EDIT, {"text": "Done."})
    ask = ("run", "Greet the moon", "--session", "greets", "--request-id", "r-1", "--json")

    parked = longhaul(there, *ask, "--model", model)
    ended = {name: there.restart(name) for name in ("worker", "serve", "redis", "temporal")}
    waiting = longhaul(there, "inbox", "--json")
    unchanged = (shop(there) / "greeting.txt").read_text()
    approved = longhaul(there, "approve", "greets", "--all")
    done = longhaul(there, *ask)

    assert (parked.code, parked.document["pending"][0]["call_id"]) == (3, "edit-7"), parked.err
    assert "LONGHAUL_PROJECT" not in parked.err
    assert ended == dict.fromkeys(ended, 0), "each ended in order within its grace"
    assert '"greets"' in waiting.out
    assert unchanged == "hello world\n"
    assert approved.code == 0, approved.err
    assert (done.code, done.document["text"]) == (0, "Done."), done.err
    assert (shop(there) / "greeting.txt").read_text() == "hello moon\n"


def test_from_another_folder_a_session_has_one_of_its_own_and_it_is_said(there: Composition, tmp_path: Path) -> None:
    note = {"file_path": "note.txt", "content": "made here\n"}
    model = script(there, "writes", {"tool_calls": [{"name": "Write", "input": note}]}, {"text": "Written."})

    began = time.monotonic()
    answer = longhaul(
        there,
        "run",
        "Write a note",
        "--session",
        "own",
        "--mode",
        "accept_edits",
        "--model",
        model,
        "--json",
        cwd=tmp_path,
    )
    took = time.monotonic() - began
    status = longhaul(there, "show", "own", "--json", cwd=tmp_path)

    assert (answer.code, answer.document["text"]) == (0, "Written."), answer.err
    assert answer.err.count("don't see") == 1
    assert f"don't see '{tmp_path}': a new session works in an empty folder of its own there" in answer.err
    assert list(tmp_path.iterdir()) == []
    kept = there.folder / "volumes" / "data" / "workspaces"
    assert [file.read_text() for file in kept.glob("*/note.txt")] == ["made here\n"]
    assert '"/data/workspaces/' in status.out
    assert took < usual(45), "a folder that is missing took a minute to be told"


def test_large_messages_and_results_go_both_ways(there: Composition) -> None:
    model = script(there, "long", {"text": "b" * LARGER})
    agent = shop(there) / "patient.toml"
    agent.write_text(
        f'model = "{script(there, "longer", {"text": "b" * TOO_LARGE})}"\n[model_config]\ncontext_length = 20000000\n'
    )

    client = there.host("-c", TALKS, model, str(LARGE), cwd=there.folder)
    typed = longhaul(there, "run", "-", "--agent", str(agent), "--session", "typed", "--json", stdin="c" * LARGE)

    assert client.code == 0, client.err[-2000:]
    assert client.document == [LARGER, LARGE]
    assert typed.code == 0
    assert "[The reply goes on: it has " in typed.document["text"][-200:]
    assert "Blob" not in typed.err


def test_a_deny_rule_of_the_host_holds_in_the_worker(there: Composition) -> None:
    touches = {"tool_calls": [{"name": "Bash", "input": {"command": "touch forbidden.txt"}}]}
    model = script(
        there, "touches", touches, {"text": "It was denied.", "expect": {"last_contains": "deny rule Bash(touch:*)"}}
    )

    added = longhaul(there, "rules", "add", "--user", "bob", "--deny", "Bash(touch:*)")
    answer = longhaul(there, "run", "Touch it", "--user", "bob", "--mode", "bypass", "--model", model, "--json")

    assert added.code == 0, added.err
    assert (answer.code, answer.document["text"]) == (0, "It was denied."), answer.out + answer.err
    assert not (shop(there) / "forbidden.txt").exists()


def test_the_http_server_lets_in_who_has_a_token_made_there(there: Composition) -> None:
    made = there.within("serve", "longhaul", "serve", "token", "--user", "ana", "--scopes", "read,answer")
    token, messages = made.out.strip(), "/v1/sessions/longhaul/evening/messages?wait=30"
    body = json.dumps({"messages": "Good evening"})

    health = asks(there, "GET", "/health")
    stranger = asks(there, "POST", messages, "", body)
    answered = asks(there, "POST", messages, token, body)
    steered = asks(there, "POST", "/v1/sessions/longhaul/evening/pause", token, "{}")

    assert made.code == 0, made.err
    assert health[0] == 200
    assert stranger[0] == 401
    assert answered[0] == 200, answered
    assert answered[1]["message"]["content"][0]["text"] == "Good evening."
    assert steered[0] == 403


@pytest.mark.proves("F5")
def test_an_agent_that_the_user_has_brought_works_with_its_tools_secrets_and_notices(there: Composition) -> None:
    made = there.within("serve", "longhaul", "serve", "token", "--user", "ben", "--scopes", "read,answer,approve")
    token, session = made.out.strip(), "/v1/sessions/shop/lamps"
    asking = json.dumps({"messages": "Buy a lamp"})

    parked = asks(there, "POST", f"{session}/messages?wait=30", token, asking)
    ordered = longhaul(there, "approve", "lamps", "order-7", "--user", "ben", "--json")
    assert ordered.code == 0, ordered.err
    said = until_said(there, "A lamp is on its way.", session, token)

    assert made.code == 0, made.err
    assert parked[1]["message"]["metadata"]["waiting_for"] == ["order-7"]
    assert "order" in mail_about(there, "lamps")
    assert "seven" not in said


def test_the_sandbox_needs_no_capability_and_no_file_but_namespaces_of_users(there: Composition) -> None:
    tries = "from longhaul.activities.process.sandbox import bwrap_problem; print(bwrap_problem())"

    allowed = there.within("worker", "python", "-c", tries, namespaces=True)
    forbidden = there.within("worker", "python", "-c", tries)

    assert (allowed.code, allowed.out) == (0, "\n"), allowed
    assert "bubblewrap does not work here" in forbidden.out


@pytest.mark.parametrize("name", ["worker", "serve"])
def test_a_service_writes_to_its_volumes_and_to_memory_alone(name: str, there: Composition) -> None:
    places = ("/data", "/memory", "/tmp", "/home/longhaul", "/srv/longhaul/agents", "/app", "/etc")

    written = {place: there.within(name, "touch", f"{place}/x").code for place in places}

    assert written == dict.fromkeys(places[:4], 0) | dict.fromkeys(places[4:], 1)


def test_the_http_server_answers_under_the_names_that_it_was_given(there: Composition) -> None:
    statuses = {
        name: there.host("-c", ASKS_AS, name, cwd=there.folder).out.strip()
        for name in ("agents.shop.example", "other.example")
    }

    assert statuses == {"agents.shop.example": "401", "other.example": "421"}


def test_a_service_that_lacks_another_is_not_well(there: Composition) -> None:
    there.stop("temporal")
    without = {name: there.is_well(name) for name in ("worker", "serve", "redis")}
    there.start("temporal")
    for name in without:
        there.wait_for(name)

    assert without == {"worker": False, "serve": False, "redis": True}
