"""Says of a path why people are asked before it is read or written: its name may hold secrets, or be of a file that
other programs run or agents obey; or it is a pipe, or a file with a second name.

A name is all that can be judged without reading. The tables fail closed on the side of asking: a file that only looks
like one of these can still be read after a person has agreed.
"""

import os
import re
import stat
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from longhaul.agent.permission.call_facts import is_env_file, is_secret
from longhaul.agent.plain.text import names

Access = Literal["read", "write"]

_CONFIGURATION_FOLDERS = frozenset({".git", ".ssh", ".vscode", ".idea", ".longhaul", ".husky", ".gnupg"})
_CONFIGURATION_FILES = names(
    ".envrc .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile"
    " .zlogin .netrc .npmrc .pypirc .gitconfig .gitmodules .mcp.json .inputrc .vimrc .tmux.conf"
)
PACKAGES = frozenset({"node_modules", "site-packages", "dist-packages", ".pnpm", ".venv", ".git"})
"""Folders in which package managers and git give one file many names."""


_RUN_FILES = names(
    "makefile gnumakefile makefile.am justfile rakefile gulpfile.js gruntfile.js dockerfile containerfile jenkinsfile"
    " vagrantfile brewfile procfile tiltfile earthfile fastfile podfile snakefile taskfile.yml taskfile.yaml"
    " docker-compose.yml docker-compose.yaml compose.yml compose.yaml"
    " conftest.py setup.py setup.cfg pyproject.toml tox.ini noxfile.py pytest.ini tasks.py fabfile.py manage.py"
    " sitecustomize.py usercustomize.py pyvenv.cfg pip.conf uv.toml pdm.toml poetry.toml .pdbrc .pythonrc .coveragerc"
    " pylintrc .pylintrc mypy.ini ruff.toml .ruff.toml"
    " package.json pnpm-workspace.yaml .pnpmfile.cjs .yarnrc .yarnrc.yml deno.json deno.jsonc bunfig.toml turbo.json"
    " nx.json lerna.json .babelrc .eslintrc .mocharc.json .nycrc .npmrc"
    " build.rs cargo.toml rust-toolchain rust-toolchain.toml clippy.toml go.mod go.work magefile.go"
    " build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.properties pom.xml build.sbt build.xml"
    " gemfile composer.json mix.exs rebar.config project.clj build.zig cmakelists.txt cmakepresets.json meson.build"
    " configure configure.ac build.bazel workspace.bazel module.bazel .bazelrc buck .buckconfig sconstruct wscript"
    " flake.nix shell.nix default.nix devbox.json .envrc .tool-versions .mise.toml mise.toml .python-version .nvmrc"
    " .gitlab-ci.yml .travis.yml .drone.yml .woodpecker.yml azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml"
    " cloudbuild.yaml .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .huskyrc .lintstagedrc"
    " .gitattributes .gitmodules .ripgreprc .gdbinit .lldbinit .exrc .vimrc .nvimrc .dir-locals.el"
    " agents.md agent.md claude.md claude.local.md gemini.md codex.md copilot-instructions.md .cursorrules"
    " .windsurfrules .clinerules .roorules .goosehints .aider.conf.yml llms.txt skill.md longhaul.toml .mcp.json"
    " opencode.json"
)
_RUN_PATTERNS = re.compile(
    r".*\.(?:pth|service|timer|desktop|code-workspace|mk|mak)|agents/[^/]*\.toml"
    r"|(?:\.eslintrc|\.prettierrc|\.lintstagedrc|\.mocharc|\.babelrc|\.huskyrc)\..*"
    r"|(?:vite|vitest|jest|webpack|rollup|babel|eslint|prettier|postcss|tailwind|next|nuxt|svelte|astro|karma|cypress"
    r"|playwright|commitlint|lint-staged|wdio|metro|esbuild|tsup|gatsby-config|nodemon|pm2|ecosystem|release)"
    r"(?:\.config|\.conf)?\.(?:[cm]?[jt]s|json)"
    r"|docker-compose\..*|compose\..*\.ya?ml|dockerfile\..*|.*\.dockerfile"
)
"""Of names in lower case; `agents/NAME.toml` with its folder."""
_RUN_FOLDERS = names(
    ".github .gitlab .gitea .forgejo .circleci .buildkite .woodpecker .teamcity .azure-pipelines .husky .lefthook"
    " .cargo .devcontainer .claude .cursor .windsurf .gemini .codex .opencode .continue .roo .cline .goose .aider .mvn"
    " .bundle"
    " .yarn .zed .fleet .nvim .direnv .githooks git-hooks .hooks"
)
_RUN_FOLDER_PAIRS = frozenset(
    {("node_modules", ".bin"), (".venv", "bin"), ("venv", "bin"), ("env", "bin"), ("gradle", "wrapper")}
)
_WHOLE = frozenset({"agents", ".bin"})
"""Folders that are such files' own: whoever moves one there brings what lies in it."""


def danger_by_name(parts: tuple[str, ...], access: Access) -> str:
    """Why touching a path of these parts is a reason to ask; empty when it is none."""
    lower = tuple(part.lower() for part in parts)
    if not lower:
        return ""
    name = lower[-1]
    secret = f"{name} may hold secrets" if is_secret(lower) else ""
    if access == "read":
        return secret
    folder = next((part for part in lower if part in _CONFIGURATION_FOLDERS), None)
    if folder is not None:
        return f"{folder} is configuration that can run code or open doors"
    if name in _CONFIGURATION_FILES or is_env_file(name):
        return f"{name} is configuration that can run code or open doors"
    return secret


def danger_by_kind(path: Path) -> str:
    """Why what lies there is no plain file of one name: a pipe would block, another name may lie anywhere."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return ""
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        return f"{path.name} is a pipe or a socket"
    if _is_second_name(path, status):
        return f"{path.name} has a second name (a hard link), which may lie outside of the workspace"
    return ""


def has_second_name(path: Path) -> bool:
    """Whether the file, which is none of a package, has a further name, which may lie anywhere."""
    try:
        return _is_second_name(path, os.lstat(path))
    except (OSError, ValueError):
        return False


def _is_second_name(path: Path, status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and PACKAGES.isdisjoint(path.parts)


def danger_to_others(parts: tuple[str, ...]) -> str:
    """Why writing there, relative to the workspace, changes what a command does that was allowed before."""
    lower = tuple(part.lower() for part in parts)
    if not lower:
        return ""
    name = lower[-1]
    known = name in _RUN_FILES or name in _WHOLE or any(map(_RUN_PATTERNS.fullmatch, (name, "/".join(lower[-2:]))))
    pairs = not _RUN_FOLDER_PAIRS.isdisjoint(pairwise(lower))
    if known or pairs or not _RUN_FOLDERS.isdisjoint(lower):
        return f"{name} says what other commands or agents run"
    return ""


def lies_on_path(resolved: Path) -> bool:
    """Whether what is written there becomes a program that is found by its name."""
    return any(resolved.is_relative_to(folder) for folder in _path_folders(os.environ.get("PATH", os.defpath)))


@lru_cache(maxsize=8)
def _path_folders(path: str) -> tuple[str, ...]:
    return tuple(os.path.realpath(folder) for folder in path.split(os.pathsep) if folder.startswith("/"))
