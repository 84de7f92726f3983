"""Plain commands that change nothing and should not bother anyone."""

import json
import time
from pathlib import Path

import pytest

from activities.tools.shell_facts import examine_command
from agent.permission.engine import decide_call
from agent.permission.rules import Behavior, PermissionContext
from agent.tools import ToolDescriptor

BASH = ToolDescriptor(name="Bash")

PLAIN = """\
ls
ls -la
ls -lah src
ls src/*.py
ls -1 | wc -l
ls -lt | head -5
ls --color=never
pwd
whoami
id -u
uname -a
date
date +%Y-%m-%d
date -u "+%H:%M"
echo hello
echo "a b" 'c d'
echo -n done
printf '%s\\n' one two
true
cat README.md
cat -n README.md
cat README.md src/app.py
cat README.md | grep -i title
head -n 20 README.md
head -20 README.md
tail -n 5 README.md
tail -5 README.md | sort | uniq -c
wc -l README.md
wc -l *.md
wc -lc src/app.py
sort README.md
sort -u README.md | head
sort -t, -k2 -n data.csv
cut -d, -f1 data.csv
cut -d',' -f2,3 data.csv | sort | uniq -c | sort -rn | head -10
tr a-z A-Z < README.md
uniq -c data.csv
diff README.md data.csv
diff -u README.md data.csv
cmp README.md data.csv
stat README.md
stat -c %s README.md
file README.md
du -sh .
du -sh src | cut -f1
df -h
tree -L 2
basename src/app.py .py
dirname src/app.py
realpath src
readlink -f src/app.py
which python3
type ls
command -v git
grep -rn TODO .
grep -rn "def main" src
grep -n "a.*b" README.md
grep -E '^(a|b)$' data.csv
grep -c x data.csv
grep -ril todo src --include='*.py'
grep -v '^#' README.md | head -3
egrep 'x|y' data.csv
fgrep -n x data.csv
rg TODO
rg -n "def main" src
rg -i todo -g '*.py'
rg --files | head -50
rg -l import src
rg -A 3 -B 2 main src
find . -name '*.py'
find . -type f -name "*.md" -not -path './node_modules/*'
find src -maxdepth 2 -type d
find . -newer README.md
find . -name '*.py' | wc -l
find . -size +1M -print
find . \\( -name '*.py' -o -name '*.md' \\) -print
git status
git status --short
git status -sb
git log
git log --oneline -10
git log --oneline --graph --all | head -20
git log -p -2 README.md
git log --since='2 weeks ago' --author=ana
git log --format='%h %s' -n 3
git log HEAD~3..HEAD
git diff
git diff --stat
git diff HEAD~1
git diff --cached
git diff --name-only HEAD
git diff main...topic -- src
git show
git show HEAD
git show HEAD:README.md
git show --stat HEAD~2
git show stash@{0}
git branch
git branch -a
git branch --show-current
git rev-parse HEAD
git rev-parse --abbrev-ref HEAD
git rev-parse --show-toplevel
git ls-files
git ls-files | wc -l
git blame README.md
git blame -L 1,5 README.md
git tag -l
git remote -v
git stash list
git describe --tags
git --no-pager log -3
git -C src status
git grep -n main
cd src && ls
cd src && grep -n main app.py
cd src; ls -la
cd src && git status && git diff
ls && pwd && date
ls src || echo missing
ls nothing 2>/dev/null
ls nothing 2>&1 | head
cat README.md > /dev/null
grep -q x README.md && echo found || echo missing
grep x README.md; echo $?
echo "exit: $?"
test -f README.md && cat README.md
! grep -q zebra README.md
timeout 5 ls
timeout 10s grep -rn x src
time ls
nice -n 10 du -sh src
python --version
python3 -V
node --version
npm -v
gcc --version
make --version
git --version
pip list
pip show pydantic
jq . data.json
jq -r '.name' data.json
jq '.items[] | select(.id > 3)' data.json
cat data.json | jq '.items | length'
sed -n '1,20p' README.md
sed -n 5p README.md
sed 's/a/b/g' README.md | head
md5sum README.md
sha256sum README.md src/app.py
xxd README.md | head -2
od -c README.md | head
nl README.md
tac README.md
seq 1 5
sleep 0
env | sort
make -n
ps aux | grep python
ls \\
  -la
ls # what is here
# first look
ls -R src
"""
LINES = PLAIN.replace("ls \\\n  -la\n", "").replace("# first look\n", "").splitlines()
LINES += ["ls \\\n  -la", "# first\nls"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    (root / "src").mkdir()
    (root / ".git").mkdir()
    for name in ("README.md", "data.csv", "data.json", "src/app.py"):
        (root / name).write_text("a,b\n")
    return root


def _behavior(line: str, root: Path) -> Behavior:
    facts = examine_command(line, root, root)
    return decide_call(BASH, json.dumps({"command": line}), facts, PermissionContext(), str(root)).behavior


def test_at_most_one_plain_command_in_twenty_is_asked_about(workspace: Path) -> None:
    asked = [line for line in LINES if _behavior(line, workspace) is not Behavior.ALLOW]

    assert len(LINES) >= 150
    assert len(asked) <= len(LINES) * 0.05, asked
    assert {"env | sort", "make -n"} <= set(asked)


def test_a_thousand_decisions_are_timed(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mixed = (LINES + [f"{line} && npm run build" for line in LINES] + [f"echo $({line})" for line in LINES]) * 3
    seconds = []
    for line in mixed[:1000]:
        begun = time.perf_counter()
        _behavior(line, workspace)
        seconds.append(time.perf_counter() - begun)

    seconds.sort()
    with capsys.disabled():
        print(f"\n{len(seconds)} decisions: p50 {seconds[499] * 1e3:.2f} ms, p95 {seconds[949] * 1e3:.2f} ms")
    assert len(seconds) == 1000
    assert seconds[499] < 0.1
