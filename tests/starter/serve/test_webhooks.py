"""Webhooks: who is let in by a signature, of whom nothing is learnt, and what their file may hold."""

import base64
import time
from pathlib import Path

import pytest

from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.webhooks import BadWebhooks, Delivery, SignedHook, read, sender_of, signed

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))
OTHER = f"whsec_{base64.b64encode(b'o' * 32).decode()}"
HOOK = SignedHook("ci", KEY, "ana", "lamp", "night")
BODY = b'{"test": 2432232314}'
AT = 1614265330


def delivery(body: bytes = BODY, **other: str) -> Delivery:
    given = {"hook": "ci", "id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "timestamp": str(AT), **other}
    own = signed(KEY, given["id"], given["timestamp"], BODY)
    return Delivery(given["hook"], given["id"], given["timestamp"], given.get("signatures", own), body)


def test_the_example_of_the_specification_is_signed_as_it_says() -> None:
    assert delivery().signatures == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert sender_of(delivery(), [HOOK], AT) is HOOK


@pytest.mark.parametrize(
    "forged",
    [
        delivery(body=b'{"test": 1}'),
        delivery(hook="cd"),
        delivery(signatures=""),
        delivery(signatures="v1," + "A" * 43 + "="),
        delivery(signatures=delivery().signatures.removeprefix("v1,")),
        delivery(signatures="v1a," + delivery().signatures[3:]),
        delivery(signatures="v1,\udcff"),
        delivery(signatures=delivery(id="msg_2").signatures),
        delivery(signatures=delivery(timestamp=str(AT + 1)).signatures),
        delivery(timestamp="now"),
        delivery(timestamp=""),
        delivery(timestamp="-1"),
        delivery(id=""),
        delivery(id="x" * 301),
    ],
)
def test_what_is_not_signed_so_is_a_stranger_s(forged: Delivery) -> None:
    for hooks in ([HOOK], []):
        with pytest.raises(Problem, match="webhook-signature: send webhook-id") as told:
            sender_of(forged, hooks, AT)
        assert told.value.status == 401


def test_one_that_is_old_or_from_the_future_is_refused_for_that() -> None:
    for now in (AT + 301, AT - 301, time.time()):
        with pytest.raises(Problem, match="webhook-timestamp: it is more than 300 seconds away") as told:
            sender_of(delivery(), [HOOK], now)
        assert told.value.status == 401
    assert sender_of(delivery(), [HOOK], AT + 300) is HOOK


def test_several_signatures_and_several_secrets_while_one_changes() -> None:
    new = SignedHook("ci", b"n" * 32, "ana", "lamp", "night")
    both = delivery(signatures=f"v1a,x {signed(new.key, 'other', '1', BODY)} {delivery().signatures}")
    assert sender_of(both, [new, HOOK], AT) is HOOK
    many = delivery(signatures="v1,x " * 10 + delivery().signatures)
    with pytest.raises(Problem):
        sender_of(many, [HOOK], AT)


def test_a_file_says_whose_each_is(tmp_path: Path) -> None:
    path = tmp_path / "webhooks"
    assert read(path) == ()
    path.write_text(f"# mine\n\nci {SECRET} Ana%20Lima lamp night deployed,failed\nall {OTHER} bob lamp *\n")
    path.chmod(0o600)
    assert read(path) == (
        SignedHook("ci", KEY, "Ana Lima", "lamp", "night", ("deployed", "failed")),
        SignedHook("all", b"o" * 32, "bob", "lamp", "*"),
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ci", "line 1 is not `name secret user agent session"),
        (f"c/i {SECRET} ana lamp night", "line 1 is not `name secret user agent session"),
        ("ci whsec_c2hvcnQ= ana lamp night", "line 1: the secret has to be `whsec_` and 24 to 64 bytes"),
        ("ci hunter2-hunter2 ana lamp night", "line 1: the secret has to be"),
        (f"ci {SECRET} %FF lamp night", "line 1: '%FF' can't be a user"),
    ],
)
def test_a_line_that_can_not_be_used_is_named_without_its_secret(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "webhooks"
    path.write_text(line)
    path.chmod(0o600)
    with pytest.raises(BadWebhooks, match=why) as told:
        read(path)
    assert "hunter2" not in str(told.value)
    assert SECRET not in str(told.value)


def test_two_hooks_have_two_secrets_and_one_may_have_several(tmp_path: Path) -> None:
    path = tmp_path / "webhooks"
    path.write_text(f"ci {SECRET} ana lamp night\nci {OTHER} ana lamp night\nci {SECRET} ana lamp day\n")
    path.chmod(0o600)
    assert [hook.name for hook in read(path)] == ["ci"] * 3
    path.write_text(f"ci {SECRET} ana lamp night\n\ncd {SECRET} bob lamp night\n")
    with pytest.raises(BadWebhooks, match="line 3: 'cd' has the secret of 'ci'") as told:
        read(path)
    assert SECRET not in str(told.value)


def test_a_file_that_others_may_read_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "webhooks"
    path.write_text("")
    path.chmod(0o644)
    with pytest.raises(BadWebhooks, match="mode 0644"):
        read(path)
