"""What others run or obey is not written unasked, however the name comes about."""

from pathlib import Path

import pytest

from longhaul.activities.repository import MOST_NAMES
from longhaul.activities.shell.paths import path_use
from longhaul.activities.shell.walk import examine_command

NAMES = [
    ".claude/settings.json", ".cursor/rules/x.mdc", ".cursorrules", "GEMINI.md", "CLAUDE.md", "AGENTS.md",
    ".devcontainer/devcontainer.json", "bitbucket-pipelines.yml", ".gitea/workflows/x.yml",
    ".github/workflows/x.yml", ".gitlab-ci.yml", ".drone.yml", "lefthook.yml", ".husky/pre-commit",
    ".cargo/config.toml", "x.pth", "node_modules/.bin/tsc", "package.json", "setup.py", "setup.cfg", "tox.ini",
    "noxfile.py", "pytest.ini", "conftest.py", "deep/er/conftest.py", "sitecustomize.py", "pyproject.toml",
    "Makefile", "GNUmakefile", "rules.mk", "justfile", "Rakefile", "Gemfile", "Jenkinsfile", "Dockerfile",
    "Dockerfile.dev", "docker-compose.yml", "compose.override.yml", "build.gradle", "settings.gradle.kts",
    "pom.xml", "build.rs", "Cargo.toml", "vite.config.ts", "jest.config.js", "webpack.config.cjs", ".eslintrc.js",
    ".prettierrc.cjs", "babel.config.js", "gulpfile.js", "turbo.json", ".envrc", ".tool-versions", "mise.toml",
    ".pre-commit-config.yaml", ".travis.yml", ".circleci/config.yml", "azure-pipelines.yml", "appveyor.yml",
    ".buildkite/pipeline.yml", ".woodpecker.yml", "agents/x.toml", "longhaul.toml", ".mcp.json", ".gitattributes",
    ".gdbinit", "CMakeLists.txt", "meson.build", "configure", "flake.nix", "shell.nix", ".bazelrc",
    "WORKSPACE.bazel", "Procfile", "Vagrantfile", ".yarnrc.yml", ".pnpmfile.cjs", ".venv/bin/python",
    "venv/bin/pip", "gradle/wrapper/gradle-wrapper.properties", ".mvn/jvm.config", ".githooks/pre-push",
    "x.service", "tasks.py", "Taskfile.yml", ".vscode/tasks.json", ".idea/x.xml", ".git/hooks/x",
    ".copilot/../.github/copilot-instructions.md",
]  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    for name in ("agents/x", "conftest", "staged/x.toml", "plain.py", "src/app.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("a\n")
    return root


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_others_run_asks_before_it_is_written(name: str, root: Path) -> None:
    assert path_use((root / name).resolve(), "write", root).danger
    assert path_use((root / name.upper()).resolve(), "write", root).danger


@pytest.mark.parametrize(
    "name", ["src/app.py", "README.md", "data.json", "notes.toml", "docs/agents.rst", "tests/test_x.py"]
)
def test_other_files_do_not(name: str, root: Path) -> None:
    assert path_use(root / name, "write", root).danger == ""


@pytest.mark.parametrize(
    "line",
    [
        *("sed -i.toml s/a/a/ agents/x", "sed -i.py s/a/a/ conftest", "sed --in-place=.py s/a/a/ conftest"),
        *(
            "mv staged agents",
            "mv staged .github",
            "mv -T staged agents",
            "cp staged/x.toml agents",
            "mv staged/x.toml agents",
        ),
        *(
            "cp plain.py conftest.py",
            "echo x > Makefile",
            "touch .cursorrules",
            "mkdir .claude",
            "cp -t agents staged/x.toml",
        ),
        *("mv src node_modules/.bin", "sed -i.toml s/a/a/ agents/*"),
    ],
)
def test_no_command_makes_one_unasked(line: str, root: Path) -> None:
    analysis = examine_command(line, root, root)

    assert not analysis.proven or any(fact.danger for fact in analysis.paths)


@pytest.fixture
def tree(root: Path) -> Path:
    """Folders that hold such names at some depth, and a plain one."""
    for name in ("pkg/er/.github/w.yml", "lib/Makefile", "keep/.env", "stage/bin/python", "full/a/b", "hooks/pre-push"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("a\n")
    for link, target in {"Justfile": "src/app.py", "x/.cursorrules": "../plain.py", "linked": "full"}.items():
        (root / link).parent.mkdir(exist_ok=True)
        (root / link).symlink_to(target)
    return root


FROM = ["pkg", "pkg/er", "pkg/", "./pkg", "pkg/../pkg", "lib", "keep", "x"]


@pytest.mark.parametrize(
    "line",
    [
        *(f"mv {flag}{folder} away" for folder in FROM for flag in ("", "-T ", "-f ", "-n ", "-v -- ")),
        *(f"mv {folder} full" for folder in FROM),
        *(f"mv -t full {folder}" for folder in FROM),
        *(f"mv plain.py {folder} full" for folder in FROM),
        *(
            "mv stage venv",
            "mv stage .venv",
            "mv stage full/venv",
            "cd stage && mv . ../venv",
            "mv stage/bin full/.bin",
        ),
        *("mv hooks .git", "mv hooks .githooks", "mv -T hooks .husky", "cd lib && mv ../lib ../away", "mv lib/ src"),
        *("mv Justfile x2", "rm Justfile", "mv plain.py Justfile", "mv -T plain.py Justfile", "cp -P x/.cursorrules y"),
        *("sed -i s/a/b/ Justfile", "sed -i s/a/b/ x/.cursorrules", "echo x > Justfile", "rm x/.cursorrules"),
        *("rmdir -p a/b", "rmdir --parents a/b", "sed -i.mk s/a/b/ plain", "mv pkg/er/.github/w.yml full"),
    ],
)
def test_no_folder_is_moved_that_brings_one_along_or_away(line: str, tree: Path) -> None:
    analysis = examine_command(line, tree, tree)

    assert not analysis.proven or any(fact.danger for fact in analysis.paths)


@pytest.mark.parametrize("line", ["mv full away", "mv full/a src", "mv linked other", "mv -t src full", "rmdir full/a"])
def test_a_plain_folder_is_moved(line: str, tree: Path) -> None:
    analysis = examine_command(line, tree, tree)

    assert analysis.proven
    assert [fact.danger for fact in analysis.paths if fact.danger] == []


def test_a_folder_of_too_many_names_is_not_proven(root: Path) -> None:
    (root / "many").mkdir()
    for number in range(MOST_NAMES + 1):
        (root / "many" / str(number)).touch()

    assert not examine_command("mv many other", root, root).proven


def test_what_becomes_a_program_on_path_asks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{root}/tools:/usr/bin")

    assert path_use(root / "tools" / "ls", "write", root).danger == "ls becomes a program on PATH"
    assert path_use(root / "src" / "ls", "write", root).danger == ""
