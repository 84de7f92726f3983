"""Bearer tokens: what their file may hold, who they let in, and what is never told."""

from pathlib import Path

import pytest

from longhaul.starter.serve.tokens import BadTokens, Caller, Tokens, digest_of, issue, parsed

ANA = "a" * 64


def test_a_new_token_opens_its_users_sessions_and_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "tokens"

    token = issue(path, "Ana Lima", "answer,read")
    other = issue(path, "bob", "approve")

    tokens = Tokens.of(str(path))
    assert tokens is not None
    assert tokens.caller_of(token) == Caller("Ana Lima", "Ana Lima", frozenset({"read", "answer"}))
    assert tokens.caller_of(other) == Caller("bob", "bob", frozenset({"approve"}))
    assert path.stat().st_mode & 0o777 == 0o600
    assert token not in path.read_text()
    assert path.read_text().startswith(f"{digest_of(token)} Ana%20Lima read,answer\n")


def test_a_token_may_open_the_sessions_of_further_users_and_names_each_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens"

    lead = issue(path, "lea", "read,approve", ["Ana Lima", "bob, jr", "Ana Lima"])

    tokens = Tokens.of(str(path))
    assert tokens is not None
    caller = tokens.caller_of(lead)
    assert caller == Caller("lea", "lea", frozenset({"read", "approve"}), frozenset({"Ana Lima", "bob, jr"}))
    assert caller is not None
    assert caller.users == {"lea", "Ana Lima", "bob, jr"}
    assert path.read_text().endswith(" lea read,approve Ana%20Lima,bob%2C%20jr\n")
    with pytest.raises(BadTokens, match="--also"):
        issue(path, "lea", "read", [""])


@pytest.mark.parametrize("token", ["", "lh_", "x" * 300, ANA, "lh_\udcff"])
def test_what_is_no_token_lets_nobody_in(token: str) -> None:
    tokens = Tokens.of(f"{digest_of('lh_right')} ana; {ANA} bob")

    assert tokens is not None
    assert tokens.caller_of("lh_right") == Caller("ana", "ana", frozenset({"read", "answer", "approve"}))
    assert tokens.caller_of(token) is None


def test_a_line_taken_out_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    token = issue(path, "ana", "read")
    tokens = Tokens.of(str(path))
    assert tokens is not None
    assert tokens.caller_of(token) is not None

    path.write_text("# nobody\n")

    assert tokens.caller_of(token) is None


def test_a_file_that_becomes_unusable_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    token = issue(path, "ana", "read")
    tokens = Tokens.of(str(path))
    assert tokens is not None

    for mode in (0o644, 0o640, None):
        path.unlink() if mode is None else path.chmod(mode)
        for _ in range(2):
            with pytest.raises(BadTokens, match="LONGHAUL_SERVE_TOKENS"):
                tokens.caller_of(token)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    issue(path, "ana", "read")
    path.chmod(0o604)

    with pytest.raises(BadTokens, match=r"has mode 0604, so others reach it; set it to 0600"):
        Tokens.of(str(path))
    with pytest.raises(BadTokens, match="0604"):
        issue(path, "bob", "read")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ana", "line 2 is not `sha256"),
        (f"{ANA[1:]} ana", "line 2 is not `sha256"),
        (f"{ANA} ana read bob extra", "line 2 is not `sha256"),
        (f"{ANA} ana read bob,", "user: '' can't be used"),
        (f"{ANA} ana read,anwser", "there is no scope 'anwser'"),
        (f"{ANA} ana ,", "there is no scope ''"),
        (f"{ANA} %ff", "user: '%ff' can't be used"),
        (f"{ANA} {'x' * 700}", "700 characters is too long"),
    ],
)
def test_a_wrong_line_is_named(line: str, why: str) -> None:
    with pytest.raises(BadTokens, match=why):
        parsed(f"\n{line}\n", "tokens")


def test_a_token_without_a_user_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(BadTokens, match="--user"):
        issue(tmp_path / "tokens", "", "read")
    with pytest.raises(BadTokens, match="--scopes"):
        issue(tmp_path / "tokens", "ana", "all")

    assert list(tmp_path.iterdir()) == []


def test_a_line_is_added_behind_one_that_does_not_end(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"{ANA} ana")
    path.chmod(0o600)

    issue(path, "bob", "read")

    assert [line.split()[1] for line in path.read_text().splitlines()] == ["ana", "bob"]
