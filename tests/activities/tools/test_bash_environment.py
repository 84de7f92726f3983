"""What a command knows of the worker's environment, and that a proven one can't be steered by it."""

import os
from pathlib import Path

import pytest

from longhaul.activities.shell.environment_variables import INHERITED, hardened, scrubbed
from longhaul.activities.tool import Place
from longhaul.activities.tools.bash import Bash
from longhaul.agent.plain.text import names
from tests.activities.corpora.stage import git
from tests.activities.tools.calls import text_of

STEERING = names(
    "BASH_ENV ENV SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND CDPATH IFS BASH_FUNC_ls%% PAGER MANPAGER"
    " GIT_PAGER LESS LESSOPEN LESSCLOSE EDITOR VISUAL BROWSER LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT"
    " DYLD_INSERT_LIBRARIES GIT_DIR GIT_WORK_TREE GIT_CONFIG_GLOBAL GIT_CONFIG_PARAMETERS"
    " GIT_EXTERNAL_DIFF GIT_SSH_COMMAND GIT_EXEC_PATH GIT_ASKPASS SSH_ASKPASS PYTHONPATH PYTHONSTARTUP"
    " PYTHONHOME PYTHONINSPECT NODE_OPTIONS NODE_PATH PERL5OPT PERL5LIB PERL5DB RUBYOPT RUBYLIB"
    " JAVA_TOOL_OPTIONS _JAVA_OPTIONS TAR_OPTIONS GREP_OPTIONS RIPGREP_CONFIG_PATH MAKEFLAGS"
    " npm_config_script_shell GCONV_PATH LOCPATH GLIBC_TUNABLES LUA_INIT ZDOTDIR INPUTRC"
)


@pytest.mark.parametrize("name", sorted(STEERING))
def test_a_variable_that_steers_programs_is_not_inherited(name: str) -> None:
    assert name not in scrubbed({name: "sesame"})


@pytest.mark.parametrize("name", sorted(STEERING))
def test_a_proven_command_does_not_even_get_one_that_was_granted(name: str) -> None:
    granted = scrubbed({name: "sesame", "PATH": "/bin"}, {*INHERITED, name})

    assert granted[name] == "sesame"
    assert hardened(granted).get(name) != "sesame"


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        (".:/usr/bin:/bin", "/usr/bin:/bin"),
        (":/usr/bin", "/usr/bin"),
        ("/usr/bin:", "/usr/bin"),
        ("bin:node_modules/.bin:/bin", "/bin"),
        ("~/bin:/bin", "/bin"),
        ("", os.defpath),
        (".", os.defpath),
    ],
)
def test_path_leads_to_no_folder_that_a_command_stands_in(path: str, kept: str) -> None:
    assert scrubbed({"PATH": path})["PATH"] == kept


async def test_a_function_of_the_environment_does_not_replace_a_program(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASH_FUNC_ls%%", "() { echo sesame; }")
    (place.root / "file").touch()

    assert await text_of(Bash(), place, command="ls") == "file"


async def test_a_start_up_file_is_not_read(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".bashrc", ".bash_profile", ".profile"):
        (tmp_path / name).write_text("echo sesame\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BASH_ENV", str(tmp_path / ".bashrc"))

    assert await text_of(Bash(), place, command="echo fine") == "fine"


async def test_a_repository_with_hooks_and_a_monitor_runs_neither_when_it_is_only_read(
    place: Place, tmp_path: Path
) -> None:
    marker = tmp_path / "gone"
    git(place.root, "init", "-q")
    (place.root / "a").touch()
    git(place.root, "add", "a")
    git(place.root, "commit", "-qm", "x")
    evil = place.root / ".git" / "hooks" / "post-index-change"
    evil.write_text(f"#!/bin/sh\ntouch {marker}\n")
    evil.chmod(0o755)
    git(place.root, "config", "core.fsmonitor", f"touch {marker};")

    analysis = await Bash().examine({"command": "git status --short"}, place)
    shown = await text_of(Bash(), place, command="git status --short && git diff --stat")

    assert analysis.read_only
    assert shown == "(no output)"
    assert not marker.exists()


async def test_git_is_not_read_unasked_where_there_are_submodules(tmp_path: Path) -> None:
    root, module = tmp_path / "top", tmp_path / "module"
    for folder in (root, module):
        folder.mkdir()
        git(folder, "init", "-q")
    (module / "notes").write_text("marmalade\n")
    git(module, "add", ".")
    git(module, "commit", "-qm", "first")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module), "tea")

    analysis = await Bash().examine({"command": "git grep marmalade"}, Place(root=root, cwd=root))

    assert not analysis.read_only
