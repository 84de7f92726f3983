"""The corpora of command lines, and the workspace that they are judged and run in.

A corpus is a text file: `# family` above its lines, one command a line; one that begins with a double quote is a JSON
string. `@OUT@` is a folder outside of the workspace, `@PORT@` a port of this machine where somebody listens.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from longhaul.activities.tool import Place

HERE = Path(__file__).parent
SECRET = "marmalade-4711"


@dataclass(frozen=True, slots=True)
class Line:
    family: str
    text: str


def corpus(name: str) -> list[Line]:
    found, family = [], ""
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            family = line.removeprefix("# ")
        elif line:
            found.append(Line(family, json.loads(line) if line.startswith('"') else line))
    return found


@dataclass(frozen=True, slots=True)
class Stage:
    """A workspace with secrets, links that lead out, and a repository; a home and a folder that are none of it.

    `gone` in the workspace is a link to a file of that name outside, which is not there: the marker.
    """

    root: Path
    home: Path
    outside: Path

    @property
    def place(self) -> Place:
        return Place(root=self.root, cwd=self.root)

    def text(self, line: str, port: int = 9) -> str:
        return line.replace("@OUT@", str(self.outside)).replace("@PORT@", str(port))


def build(folder: Path) -> Stage:
    stage = Stage(*(folder.resolve() / name for name in ("workspace", "home", "outside")))
    _write(stage.home, {".ssh/id_rsa": SECRET, ".netrc": SECRET, ".bash_history": SECRET, ".aws/credentials": SECRET})
    _write(stage.outside, {"kept": "kept\n", "secret": SECRET, "into/x": "x\n"})
    root = stage.root
    _write(root, _FILES)
    links: dict[str, Path | str] = {
        "link-to-passwd": "/etc/passwd", "link-to-etc": "/etc", "link-to-secret": stage.outside / "secret",
        "link-out": stage.outside, "dangling": stage.outside / "gone", "gone": stage.outside / "gone",
        "link-to-env": ".env",
    }  # fmt: skip
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.link(stage.outside / "kept", root / "hard-link")
    os.link(stage.outside / "secret", root / "hard-link-to-secret")
    os.mkfifo(root / "pipe")
    git(root, "init", "-q")
    git(root, "add", "--", "README.md", "src", ".env", "keys", "x", "data.json", "data.csv")
    git(root, "commit", "-qm", "first")
    (root / ".env").write_text(f"TOKEN={SECRET}\nMORE={SECRET}\n")
    (root / "src" / "app.py").write_text("print('changed')\nmain = 1\n")
    return stage


_FILES = {
    ".env": f"TOKEN={SECRET}\n", ".env.local": f"TOKEN={SECRET}\n", "keys/server.pem": f"PRIVATE KEY {SECRET}\n",
    "keys/id_rsa": f"PRIVATE {SECRET}\n", "README.md": "# title\nfind the TODO of main\n", "x": "x TOKEN in a.b\n",
    "data.csv": "a,b\n1,2\n", "data.json": '{"name": "ana", "items": [{"id": 4}]}', "src/app.py": "main = 0\n",
    "src/deep/more.py": "import os\n", "a/b": "b\n", "bare/HEAD": "x", "bare/config": "x", "bare/objects/x": "",
    "bare/refs/x": "", "opt/--output=gone": "x", "opt/--pre=sh": "x", "opt/-ogone": "x", "opt/plain": "x",
    "node_modules/tea/index.js": "exports.main = 1\n", "docs/guide.md": "guide\n",
    "tests/test_app.py": "def test(): 0\n",
}  # fmt: skip


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=ana", "-c", "user.email=ana@example.org", "-c", "init.defaultBranch=main")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True, env=clean)
