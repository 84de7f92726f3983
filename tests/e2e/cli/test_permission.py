"""`longhaul permission check` as a script uses it: lines in, lines out, and no server anywhere."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.activities.corpora.stage import build, corpus
from tests.e2e.warm_cli import warm
from tests.limits import usual

CLI = [sys.executable, "-m", "longhaul.starter.cli.main"]
ROOT = Path(__file__).parents[3]


def environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("LONGHAUL_", "TEMPORAL_"))}
    return ours | {"TEMPORAL_ADDRESS": "127.0.0.1:1", "PYTHONPATH": str(ROOT)}


def check(lines: bytes, *flags: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*CLI, "permission", "check", *flags], input=lines, cwd=cwd, env=environment(), capture_output=True, check=False
    )


def checked(lines: bytes, *flags: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """For tests of what is said, not of how a process starts: that takes a second of the processor."""
    arguments = ["permission", "check", *flags]
    code, out, err = warm().run(arguments, environment(), cwd, lines.decode())
    return subprocess.CompletedProcess(arguments, code, out.encode(), err.encode())


def decided(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def lines_of(*calls: object) -> bytes:
    return "".join(json.dumps(call) + "\n" for call in calls).encode()


def test_each_call_gets_its_decision_in_order(tmp_path: Path) -> None:
    calls = lines_of(
        {"id": "a", "command": "ls -la"},
        {"id": 2, "tool": "Bash", "input": {"command": "git push"}},
        {"id": None, "tool": "Read", "input": '{"file_path": "/etc/shadow"}'},
        {"id": [3], "tool": "Write", "input": {"file_path": "new", "content": "x"}},
        {"id": 4, "tool": "Nothing", "input": {}},
        {"id": 5, "tool": "Grep", "input": {"pattern": "x"}},
        {"id": 6, "tool": "Edit", "input": {"file_path": 7}},
    )

    done = check(calls, cwd=tmp_path)

    answers = decided(done)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [answer["id"] for answer in answers] == ["a", 2, None, [3], 4, 5, 6]
    assert [answer["behavior"] for answer in answers] == ["allow", "ask", "ask", "ask", "deny", "allow", "deny"]
    assert answers[1]["suggested_rules"] == [
        {"tool_name": "Bash", "rule_content": "git push", "behavior": "allow", "source": "suggested"}
    ]
    assert "there is no tool 'Nothing'" in str(answers[4]["reason"])
    assert list(tmp_path.iterdir()) == []


def test_malformed_input_gets_an_error_each_and_exit_2_at_the_end(tmp_path: Path) -> None:
    malformed_input = [
        b"nonsense", b"[1]", b"7", b'{"id": 9}', b'{"id": 8, "tool": "Bash"}', b'{"id": 7, "tool": 3, "input": {}}',
        b"\xff\xfe", b"[" * 100_000, b'{"id": NaN, "command": "ls"}', b'{"id": 1, "command": "ls"', b"9" * 10_000,
    ]  # fmt: skip

    done = check(b"\n".join([*malformed_input, b"", b'{"id": "last", "command": "ls"}']), cwd=tmp_path)

    answers = decided(done)
    assert done.returncode == 2
    assert done.stderr == b"longhaul: 11 lines were no calls; see `error`\n"
    assert all(answer["error"] for answer in answers[:-1])
    assert [answer["id"] for answer in answers] == [None, None, None, 9, 8, 7, None, None, None, None, None, "last"]
    assert answers[-1]["behavior"] == "allow"


def test_arguments_that_can_not_be_used_are_denied_as_in_a_session(tmp_path: Path) -> None:
    calls = lines_of(
        {"id": 1, "command": 7}, {"id": 2, "tool": "Bash", "input": "{"}, {"id": 3, "tool": "Bash", "input": []},
        {"id": 4, "command": "ls \udc80"}, {"id": 5, "command": "x" * 1_000_000}, {"id": 6, "command": ""},
    )  # fmt: skip

    done = check(calls, cwd=tmp_path)

    assert [answer["behavior"] for answer in decided(done)] == ["deny"] * 6
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.toml", '[[rules]]\ntool_name = "Bash"\nrule_content = "make:*"\nbehavior = "allow"\n'),
        ("a.toml", '[permission]\nmode="explore"\n[[permission.rules]]\ntool_name="Bash"\nrule_content="make:*"'),
        ("r.json", '{"rules": [{"tool_name": "Bash", "rule_content": "make:*", "behavior": "allow"}]}'),
        ("list.json", '[{"tool_name": "Bash", "rule_content": "make:*", "behavior": "allow"}]'),
    ],
)  # fmt: skip
def test_rules_are_read_as_agent_files_write_them(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    call = lines_of({"id": 1, "command": "make test"})

    done = checked(call, "--rules", name, "--mode", "dont_ask", cwd=tmp_path)

    assert [answer["behavior"] for answer in decided(done)] == ["allow"]


@pytest.mark.parametrize(
    ("flags", "text", "sentence"),
    [
        (["--mode", "yolo"], "", "--mode: there is no mode 'yolo'"),
        (["--workspace", "nowhere"], "", "--workspace: there is no directory"),
        (["--rules", "absent"], "", "--rules: 'absent' can't be read"),
        (["--rules", "r"], "[", "--rules: r is neither TOML nor JSON"),
        (["--rules", "r"], '[{"tool_name": "Bash", "behaviour": "deny"}]', "a rule has no 'behaviour'"),
        (["--rules", "r"], '{"mode": "yolo"}', "mode"),
        (["--rules", "r"], "7", "r is neither TOML nor JSON"),
    ],
)
def test_flags_that_can_not_be_meant_so_are_refused(flags: list[str], text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "r").write_text(text)

    done = checked(b"", *flags, cwd=tmp_path)

    assert done.returncode == 2
    assert sentence in done.stderr.decode()


def test_answers_come_as_soon_as_the_lines_do(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*CLI, "permission", "check"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    for number in range(3):
        process.stdin.write(lines_of({"id": number, "command": "ls"}))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == number
    process.stdin.close()

    assert process.wait() == 0
    process.stdout.close()


@pytest.mark.alone
def test_a_thousand_lines_take_at_most_five_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage = build(tmp_path)
    texts = [stage.text(line.text) for name in ("benign.txt", "hostile.txt") for line in corpus(name)][:1000]

    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = check(lines_of(*({"id": at, "command": text} for at, text in enumerate(texts))), cwd=stage.root)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)

    # The processor's time is the clock's on a machine of one's own; neighbours make only the clock's longer.
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    with capsys.disabled():
        print(f"\n{len(texts)} lines in {seconds:.2f} s of the processor, {wall:.2f} s of the clock")
    assert done.returncode == 0
    assert [answer["id"] for answer in decided(done)] == list(range(1000))
    assert seconds < usual(5.0)


def test_an_agent_file_says_what_its_skills_and_rules_come_to(tmp_path: Path) -> None:
    for name, text in (
        ("SKILL.md", "---\nname: a\ndescription: Mix.\n---\nSand."),
        ("secret.txt", "x"),
        ("id_rsa", "x"),
    ):
        (tmp_path / "skills" / "a").mkdir(parents=True, exist_ok=True)
        (tmp_path / "skills" / "a" / name).write_text(text)
    (tmp_path / "agent.toml").write_text(
        'skills = ["skills"]\n[permission]\nmode = "accept_edits"\n[[permission.rules]]\n'
        'tool_name = "Read"\nrule_content = "skills/a/secret.txt"\nbehavior = "deny"\n'
    )
    calls = lines_of(
        {"tool": "Skill", "input": {"skill": "a"}},
        {"tool": "Skill", "input": {"skill": "a", "file": "secret.txt"}},
        {"tool": "Skill", "input": {"skill": "a", "file": "id_rsa"}},
        {"command": "mv skills/a/secret.txt y"},
        {"command": "mv skills/a b"},
        {"command": "sed -i.bak s/x/y/ skills/a/secret.txt"},
        {"command": "cp -r skills b"},
    )

    done = checked(calls, "--rules", "agent.toml", cwd=tmp_path)

    said = [answer["behavior"] for answer in decided(done)]
    assert said == ["allow", "deny", "ask", "deny", "deny", "deny", "deny"]


@pytest.mark.parametrize("skills", ["7", "[7]", '"skills"'])
def test_skills_that_are_no_folders_are_refused(skills: str, tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(f"skills = {skills}\n[permission]\n")

    done = checked(b"", "--rules", "agent.toml", cwd=tmp_path)

    assert done.returncode == 2
    assert b"skills takes a list of folders" in done.stderr
