"""Every attack that once got through, by the label of its cause: refused now, or harmless. With no sandbox."""

import ast
import json
from pathlib import Path

import pytest

from longhaul.activities.process.sandbox import SandboxPolicy
from longhaul.activities.shell.walk import examine_command
from longhaul.activities.tools.bash import Bash
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from tests.activities.corpora.attacks import BASH, EDITING, READING, Arena, passing
from tests.activities.corpora.stage import git
from tests.activities.tools.calls import called, place_at
from tests.codebase.syntax import tree_of

TESTS = Path(__file__).parents[2]

READ: dict[str, list[str]] = {
    "C1 digits of another script": [f"echo x >&{digit}" for digit in "\uff11\u0663\U0001d7df\u00b2\u2460"]
    + [f"ls {n}>&\uff11" for n in ("", "1", "2")],
    "C2 xxd writes": ["xxd -ps f out", "xxd -p f out", "xxd f -o1", "xxd -psr f out", "xxd f out", "xxd -s f out"],
    "C3 tree writes": ["tree -Po x out", "tree -IRo x AGENTS.md", "tree -o out", "tree -fo out", "tree -R"],
    "C4 patterns in another order": ["cd opt; sed *", "sed *", "! cd opt; sort *", "false || cd opt; sort *", "jq *"],
    "C5 git -C": [
        "cd docs && git -C ../.. diff ../outside/secret x", "cd src/deep && git -C ../../.. diff home outside",
        "cd docs; git -C ../.. diff home workspace", "git -C .. diff home outside",
    ],
    "C7 names that are no UTF-8": ["cat ???", "cat ??", "cat \udcff?", "head [!a]?"],
    "C8 a tilde behind =": ["cat a=~/.ssh/id_rsa", "cat b:~/x", "cat a=~root/x", "head x=~+/.env", "ls a=~/"],
    "C9 folders": [
        "diff keys src", "diff -N . src", "diff . src", "diff -r . src", "diff src/ keys/", "diff x src",
        "diff src x",
        "git -C opt diff . ../src", "diff -N . keys",
    ],
    "H2 of what git holds": ["git show HEAD:.env", "git cat-file -p HEAD:.env", "git log -p", "git grep marm",
    "git diff"],
    "M7 brought back": ["rg marm", "rg TOKEN .", "rg -l TOKEN", "git log -Gmarm", "git log -Smarm --oneline",
    "git diff -Smarm"],
    "low: names outside": ["ls -RL", "find -L .", "tree -l", "du -L link-out", "ls -L link-out/",
    "git describe --dirty"],
}  # fmt: skip
EDIT: dict[str, list[str]] = {
    "C1 digits of another script": ["echo x >&\uff11", "touch \uff11/../../outside/new"],
    "C8 a tilde behind =": ["touch a=~/new", "cp x a=~/new", "echo x > a=~/new", "mkdir a=~/new"],
    "H1 an edit in the line": [
        "mkdir -p evil/objects evil/refs && git -C evil status", "mv docs in2 && cp x in2/link",
        "touch y && git status",
        "mv link-out l2 && cp x l2/new", "mv src s2; cat s2/app.py", "rm x & cat x",
    ],
    "M5 names that others run": [
        "sed -i.toml s/a/a/ agents/x", "sed -i.py s/a/a/ conftest", "mv docs agents", "mv docs .github",
        "mv opt .cursor",
        "echo x > .claude/settings.json", "touch GEMINI.md", "touch .drone.yml", "cp x package.json", "touch x.pth",
    ],
    "low: wide removal": ["rm ?*", "rm **", "rm -f ?*", "mv ?* docs"],
}  # fmt: skip
RULES = {
    "git fetch origin": "git fetch --upload-pack='sh -c x' .", "git pull": "git pull -u x .",
    "make test": "make test --eval=x",
    "npm test": "npm test --script-shell=x", "npm run build": "npm run other", "go vet": "go vet -vettool=x",
    "git archive HEAD": "git archive --remote=. --exec=x HEAD", "git push origin": "git push --receive-pack=x origin",
}  # fmt: skip
"""M6: what was accepted, and a line that the same rule let pass."""

ELSEWHERE = {
    "C4 patterns in another order": "activities/shell/test_patterns.py",
    "C5, C6 repositories": "activities/shell/test_repository.py",
    "C6 submodules, and all that a repository may hold":
        "activities/shell/test_attacks.py::test_git_that_passes_in_a_hostile_repository_does_no_harm",
    "C7 names that are no UTF-8": "activities/shell/test_worlds.py",
    "H1a, H1b": "activities/shell/test_order.py::test_a_line_that_runs_unasked_meets_no_program_of_the_repository",
    "H1c a rule beside a proof": "agent/permission/test_command_chains.py",
    "H2 rules on paths": "activities/shell/test_closed_paths.py",
    "H3 the folder that one stands in": "e2e/cli/test_trust.py",
    "H4 keys by name and place": "activities/models/test_key_places.py",
    "H4 keys of processes": "test_worker_privacy.py",
    "H4 keys in what is shown":
        "workflows/workers/models/test_own_keys.py::test_own_keys_are_masked_and_given_to_nobody",
    "H5 operations": "workflows/incarnation/test_poison.py::test_a_session_answers_at_once_after_poison_of_every_kind",
    "H5 operations by HTTP": "e2e/serve/test_poison.py::test_a_session_answers_at_once_after_poison_by_http",
    "H6 several users": "e2e/serve/test_sessions.py",
    "M1 slow connections": "e2e/serve/test_slow_connections.py",
    "M2 a stream and its token": "e2e/serve/test_revoked.py::test_a_stream_ends_when_its_token_is_taken_out",
    "M4 secrets in searches": "activities/tools/test_search.py",
    "M5 names, and folders that hold them":
        "activities/shell/test_run_by_others.py::test_no_folder_is_moved_that_brings_one_along_or_away",
    "M6 suggested rules": "agent/permission/test_suggestions.py::test_a_suggested_rule_covers_no_other_command",
}  # fmt: skip
"""Those that need more than a line, and the test that makes them."""


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena(tmp_path.resolve() / "arena")


@pytest.mark.parametrize("label", READ)
def test_what_only_seems_to_read_is_refused_or_harmless(label: str, arena: Arena) -> None:
    passed = [line for line in READ[label] if passing(line, arena.stage.root, READING) is not None]

    assert [(line, harm) for line in passed if (harm := arena.harm(line, editing=False))] == []


@pytest.mark.parametrize("label", EDIT)
def test_what_only_seems_to_edit_the_workspace_is_refused(label: str, arena: Arena) -> None:
    assert [line for line in EDIT[label] if passing(line, arena.stage.root, EDITING) is not None] == []


@pytest.mark.parametrize("accepted", RULES)
def test_an_accepted_suggestion_lets_nothing_else_pass(accepted: str, arena: Arena) -> None:
    root = arena.stage.root
    asked = decide_call(
        BASH, json.dumps({"command": accepted}), examine_command(accepted, root, root), PermissionContext(), str(root)
    )
    context = PermissionContext(rules=asked.suggested_rules)

    def behavior(line: str) -> Behavior:
        analysis = examine_command(line, root, root)
        return decide_call(BASH, json.dumps({"command": line}), analysis, context, str(root)).behavior

    assert behavior(accepted) is Behavior.ALLOW
    assert behavior(RULES[accepted]) is Behavior.ASK


@pytest.mark.parametrize("line", ["git status", "git diff", "git -C . log -1", "touch y; git status"])
async def test_h1_no_program_of_a_repository_runs_beside_an_edit_or_a_rule(line: str, tmp_path: Path) -> None:
    root = (tmp_path / "root").resolve()
    root.mkdir()
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    git(root, "config", "core.fsmonitor", "touch ran; false")
    rule = PermissionRule(tool_name="Bash", rule_content="make:*")
    for whole in (line, f"make -v && {line}", f"{line}; make -v"):
        analysis = examine_command(whole, root, root)
        context = PermissionContext(mode=PermissionMode.ACCEPT_EDITS, rules=(rule,))
        raw = json.dumps({"command": whole})
        if decide_call(BASH, raw, analysis, context, str(root)).behavior is Behavior.ALLOW:
            await Bash(sandbox=SandboxPolicy("off")).run(called({"command": whole}, place_at(root), analysis))

    assert not list(root.rglob("ran"))


@pytest.mark.parametrize("label", ELSEWHERE)
def test_what_needs_more_than_a_line_has_a_test_of_its_own(label: str) -> None:
    file, _, name = ELSEWHERE[label].partition("::")
    tree = tree_of(TESTS / file)
    tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}

    assert name in tests if name else any(test.startswith("test_") for test in tests)
