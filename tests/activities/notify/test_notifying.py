"""Telling people of calls that wait: by a real server, real programs and real files, once, whatever fails."""

import asyncio
import email
import json
import shlex
import stat
import sys
from contextlib import nullcontext, suppress
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.masker import NO_SECRETS, Masker
from longhaul.activities.notify import notifications, webhook
from longhaul.activities.notify.channels import Command, Maildir, NotificationMessage, NotNotified
from longhaul.activities.notify.notifications import KEY, BadNotifySetting, Notifying, message_of, open_channels
from longhaul.activities.notify.webhook import PAUSES_SECONDS, Webhook, signature
from longhaul.agent.journal import Journal
from longhaul.agent.values.deadlines import Deadlines
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec
from tests.activities.middlewares.hook_server import hook_server
from tests.agent.play import RULES, Play, calls

SECRET = "violet-violet-violet"


def message(**fields: Any) -> NotificationMessage:
    given = {
        "key": "k1",
        "event": "waits",
        "session": "wall-7",
        "agent": "mason",
        "call_id": "c1",
        "tool": "Paint",
        "waits_for": "person",
        "arguments": "colour: red",
        "asked_at": "2026-01-02T03:04:05.000+00:00",
        "at": "2026-01-02T03:04:05.000+00:00",
        "answers": ("longhaul approve wall-7 c1",),
    }
    return NotificationMessage.model_validate({**given, **fields})


def waiting_journal(arguments: str = '{"colour": "red"}', waiting: tuple[str, ...] = ("p Paint",)) -> Journal:
    """Of a session in which calls wait that nobody was told of."""
    permission = PermissionContext(rules=RULES, deadline=Deadlines(expire_after=60))
    spec = AgentSpec(name="mason", model="scripted:wall", permission=permission)
    play = Play([calls(*waiting, arguments=arguments)], spec=spec, keeps=True)
    play.say("Go")
    while not play.journal.notifications.unsent:
        play.begin()
        if play.asked:
            play.complete()
    return play.journal


class Deaf:
    """A channel that fails so many times."""

    name = "deaf:1"

    def __init__(self, times: int) -> None:
        self.times = times
        self.heard: list[NotificationMessage] = []

    async def tell(self, message: NotificationMessage) -> None:
        if self.times:
            self.times -= 1
            raise NotNotified("it was out")
        self.heard.append(message)


async def test_a_webhook_that_fails_twice_is_told_with_a_signature_that_holds() -> None:
    with hook_server([503, 500]) as hook:
        await Webhook(hook.url, SECRET).tell(message())

    assert len(hook.posts) == 3
    headers, body = hook.posts[-1]
    assert json.loads(body)["arguments"] == "colour: red"
    assert headers["idempotency-key"] == "k1"
    assert headers["x-longhaul-signature"] == signature(SECRET, headers["x-longhaul-timestamp"], body)
    assert signature("another key", headers["x-longhaul-timestamp"], body) != headers["x-longhaul-signature"]
    assert {each["idempotency-key"] for each, _ in hook.posts} == {"k1"}


@pytest.mark.parametrize(("answers", "posts"), [([302], 1), ([404], 1), ([503, 503, 503], 3)])
async def test_a_webhook_follows_nobody_and_gives_up_for_now(answers: list[int], posts: int) -> None:
    with hook_server(answers) as hook, pytest.raises(NotNotified, match=rf"at 127\.0\.0\.1 answered {answers[0]}"):
        await Webhook(hook.url, SECRET).tell(message())

    assert len(hook.posts) == posts


async def test_a_webhook_that_is_not_there_is_a_sentence_without_its_path() -> None:
    with pytest.raises(NotNotified, match=r"the webhook at 127\.0\.0\.1 could not be reached: ConnectError") as error:
        await Webhook("http://127.0.0.1:9/token-teapot", SECRET).tell(message())

    assert "teapot" not in str(error.value)


async def test_a_command_reads_json_and_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, SECRET)
    code = "import json, os, sys; json.dump([json.load(sys.stdin), dict(os.environ)], open(sys.argv[1], 'w'))"
    command = shlex.join([sys.executable, "-c", code, str(tmp_path / "told")])
    (channel,) = open_channels(f"command:{command}")

    await channel.tell(message())

    told, environment = json.loads((tmp_path / "told").read_text())
    assert (told["key"], told["tool"]) == ("k1", "Paint")
    assert KEY not in environment
    assert SECRET not in environment.values()


async def test_a_command_that_fails_says_why_and_one_that_hangs_is_killed() -> None:
    with pytest.raises(NotNotified, match=r"ended with 3: no \\x1b line"):
        await Command(["/bin/sh", "-c", "printf 'no \\033 line'; exit 3"]).tell(message())
    with pytest.raises(NotNotified, match=r"did not end within 0\.3 s"):
        await Command(["/bin/sh", "-c", "sleep 100"], 0.3).tell(message())


async def test_a_mail_lies_in_the_maildir_once_also_when_it_was_read(tmp_path: Path) -> None:
    maildir = Maildir(tmp_path / "box", "ops@example.com", "longhaul@localhost")
    escalated = message(event="escalated", escalated_to="bo@example.com", session="wände ⟨x⟩")

    await maildir.tell(escalated)
    await maildir.tell(escalated)

    (mail,) = (tmp_path / "box" / "new").iterdir()
    read = email.message_from_bytes(mail.read_bytes(), policy=default)
    assert (read["To"], read["Cc"], read["Subject"]) == (
        "ops@example.com",
        "bo@example.com",
        "Paint in wände ⟨x⟩ was escalated",
    )
    assert "longhaul approve wall-7 c1" in read.get_content()
    assert stat.S_IMODE((tmp_path / "box").stat().st_mode) & 0o077 == 0
    assert list((tmp_path / "box" / "tmp").iterdir()) == []
    mail.rename(tmp_path / "box" / "cur" / f"{mail.name}:2,S")
    await maildir.tell(escalated)
    assert list((tmp_path / "box" / "new").iterdir()) == []


async def test_a_maildir_that_can_not_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "box").write_text("no directory")

    with pytest.raises(NotNotified, match="can't be written"):
        await Maildir(tmp_path / "box", "a@b", "c@d").tell(message())


async def test_each_channel_is_told_once_however_often_another_fails() -> None:
    journal, good, bad = waiting_journal(), Deaf(0), Deaf(1)
    good.name = "good:1"
    first = await Notifying([bad, good], NO_SECRETS).tell(journal, "ns/wall")
    (given,) = first.notified
    assert (given.channels, given.done, first.error) == (("good:1",), False, "it was out")

    key = given.key
    journal.notifications.unsent[key] = journal.notifications.unsent[key].model_copy(update={"given": given.channels})
    second = await Notifying([bad, good], NO_SECRETS).tell(journal, "ns/wall")

    assert second.notified[0].done
    assert [each.key for each in good.heard] == [each.key for each in bad.heard]
    assert len(good.heard) == 1


async def test_a_channel_that_hangs_holds_up_no_other_and_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "SECONDS", 0.2)

    class Hanging(Deaf):
        name = "hanging:1"

        async def tell(self, message: NotificationMessage) -> None:
            await asyncio.sleep(60)

    before, after = Deaf(0), Deaf(0)
    before.name, after.name = "before:1", "after:1"

    told = await Notifying([before, Hanging(0), after], NO_SECRETS).tell(waiting_journal(), "ns/wall")

    (given,) = told.notified
    assert (sorted(given.channels), given.done) == (["after:1", "before:1"], False)
    assert told.error == "hanging:1 did not accept everything within 0.2 s"


@pytest.mark.parametrize(
    ("status", "begins"), [(b"HTTP/1.1 200 OK\r\n", True), (b"HTTP/1.1 500 No\r\n", False), (b"", False)]
)
async def test_a_webhook_whose_answer_does_not_end_counts_by_its_status(
    status: bytes, monkeypatch: pytest.MonkeyPatch, *, begins: bool
) -> None:
    monkeypatch.setattr(webhook, "SECONDS", 0.3)
    over = asyncio.Queue[None]()
    tries = 1 if begins else len(PAUSES_SECONDS)

    async def answered(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(status + b"Content-Length: 1000\r\n\r\n" if status else b"HTTP/1.1 ")
        with suppress(OSError, RuntimeError):
            while True:  # until the client has gone
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        over.put_nowait(None)

    async with await asyncio.start_server(answered, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        telling = Webhook(f"http://127.0.0.1:{port}/calls", SECRET).tell(message())
        with nullcontext() if begins else pytest.raises(NotNotified):
            await asyncio.wait_for(telling, 9)
        for _ in range(tries):
            await asyncio.wait_for(over.get(), 5)


async def test_the_key_is_of_one_event_of_one_wait_of_one_session() -> None:
    journal, channel = waiting_journal(), Deaf(0)
    for session in ("ns/wall", "ns/wall", "ns/roof"):
        await Notifying([channel], NO_SECRETS).tell(journal, session)

    keys = [each.key for each in channel.heard]
    assert keys[0] == keys[1] != keys[2]


async def test_a_worker_without_channels_settles_what_is_recorded() -> None:
    told = await Notifying([], NO_SECRETS).tell(waiting_journal(), "ns/wall")

    assert [given.done for given in told.notified] == [True]


async def test_secrets_and_what_hides_do_not_leave() -> None:
    channel = Deaf(0)
    arguments = json.dumps({"colour": f"red \u202e{SECRET}\x1b[2J"})

    await Notifying([channel], Masker({"PAINT": SECRET})).tell(waiting_journal(arguments), "ns/wall")

    (told,) = channel.heard
    assert SECRET not in told.model_dump_json()
    assert "\u202e" not in told.arguments
    assert "\x1b" not in told.arguments
    assert told.answers[0] == "longhaul approve wall-7 p --user ana --agent mason"


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("pigeon:coop", "'pigeon' is no way to notify"),
        ("https://hooks.example.com/x", f"{KEY}: webhooks are signed with it"),
        ("https://ana:teapot@hooks.example.com", "no user or password"),
        ("https:///x", "needs a host"),
        ("maildir:mail?to=a@b", "write 'maildir:/PATH"),
        ("maildir:/mail", "write 'maildir:/PATH"),
        ("maildir:/mail?to=a@b&cc=c", "write 'maildir:/PATH"),
        ("maildir:/mail?to=a%0Ab", "characters that no address has"),
        ("command:", "there is no program ''"),
        ("command:no-such-program-7 x", "there is no program 'no-such-program-7'"),
        ("command:echo 'x", "can't be read"),
    ],
)
def test_a_setting_that_can_not_be_used_is_refused_with_a_sentence(target: str, complaint: str) -> None:
    with pytest.raises(BadNotifySetting, match=complaint):
        open_channels(target, {})


def test_several_ways_stand_side_by_side() -> None:
    targets = ["https://hooks.example.com/x", "maildir:/mail?to=a@b", "command:sh -c true"]

    names = [channel.name.partition(":")[0] for channel in open_channels(targets, {KEY: SECRET})]

    assert names == ["webhook", "maildir", "command"]
    assert open_channels("", {}) == []


def test_of_a_calls_arguments_4000_characters_are_told_and_1000_of_each_that_waits_with_it() -> None:
    journal = waiting_journal('{"colour": "' + "x" * 9_000 + '"}', ("p Paint", "q Paint"))
    (notification,) = journal.notifications.unsent.values()

    told = message_of(journal, notification, "k", NO_SECRETS)

    assert 4_000 <= len(told.arguments) < 4_100
    assert [1_000 <= len(other.arguments) < 1_100 for other in told.more] == [True]
