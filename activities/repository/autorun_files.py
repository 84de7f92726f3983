"""Files that programs run, or agents obey, when somebody means to run something else: the names, as data."""

import os
import re
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from longhaul.agent.permission.suggestions import names

_FILES = names(
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
_PATTERNS = re.compile(
    r".*\.(?:pth|service|timer|desktop|code-workspace|mk|mak)|agents/[^/]*\.toml"
    r"|(?:\.eslintrc|\.prettierrc|\.lintstagedrc|\.mocharc|\.babelrc|\.huskyrc)\..*"
    r"|(?:vite|vitest|jest|webpack|rollup|babel|eslint|prettier|postcss|tailwind|next|nuxt|svelte|astro|karma|cypress"
    r"|playwright|commitlint|lint-staged|wdio|metro|esbuild|tsup|gatsby-config|nodemon|pm2|ecosystem|release)"
    r"(?:\.config|\.conf)?\.(?:[cm]?[jt]s|json)"
    r"|docker-compose\..*|compose\..*\.ya?ml|dockerfile\..*|.*\.dockerfile"
)
"""Of names in lower case; `agents/NAME.toml` with its folder."""
_FOLDERS = names(
    ".github .gitlab .gitea .forgejo .circleci .buildkite .woodpecker .teamcity .azure-pipelines .husky .lefthook"
    " .cargo .devcontainer .claude .cursor .windsurf .gemini .codex .opencode .continue .roo .cline .goose .aider .mvn"
    " .bundle"
    " .yarn .zed .fleet .nvim .direnv .githooks git-hooks .hooks"
)
_FOLDER_PAIRS = frozenset(
    {("node_modules", ".bin"), (".venv", "bin"), ("venv", "bin"), ("env", "bin"), ("gradle", "wrapper")}
)
_WHOLE = frozenset({"agents", ".bin"})
"""Folders that are such files' own: whoever moves one there brings what lies in it."""


def danger_to_others(parts: tuple[str, ...]) -> str:
    """Why writing there, relative to the workspace, changes what a command does that was allowed before."""
    lower = tuple(part.lower() for part in parts)
    if not lower:
        return ""
    name = lower[-1]
    known = name in _FILES or name in _WHOLE or any(map(_PATTERNS.fullmatch, (name, "/".join(lower[-2:]))))
    pairs = not _FOLDER_PAIRS.isdisjoint(pairwise(lower))
    if known or pairs or not _FOLDERS.isdisjoint(lower):
        return f"{name} says what other commands or agents run"
    return ""


def lies_on_path(resolved: Path) -> bool:
    """Whether what is written there becomes a program that is found by its name."""
    return any(resolved.is_relative_to(folder) for folder in _path_folders(os.environ.get("PATH", os.defpath)))


@lru_cache(maxsize=8)
def _path_folders(path: str) -> tuple[str, ...]:
    return tuple(os.path.realpath(folder) for folder in path.split(os.pathsep) if folder.startswith("/"))
