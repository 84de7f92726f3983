"""No command gives content another name that a deny or ask rule about reading does not know: each entry of the positive
list, and each program that copies, moves or links, is held against rules in each mode."""

import json
from pathlib import Path

import pytest

from longhaul.activities.examine_calls import Rehearsal
from longhaul.activities.shell.programs import CARRIERS, EDITORS, GIT, PROGRAMS, REPOSITORY_CARRIERS
from longhaul.activities.tools.registry import Toolbox, default_tools
from longhaul.agent.plain.text import names
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from tests.activities.corpora.stage import git
from tests.activities.tools.calls import RIPGREP

MODES = ("default", "accept_edits", "explore", "bypass", "dont_ask")
DENIED = ("deny", "deny", "deny", "deny", "deny")
ASKED = ("ask", "ask", "ask", "ask", "deny")
EDITED = ("ask", "allow", "deny", "allow", "allow")
"""What modes say of an edit that no rule speaks of."""
RULES = ("secret.txt", "private/**", "parent/private/*.txt", "**/deep/hidden.txt")

FILE = "secret.txt"
READING = {
    **{name: f"{name} {FILE}" for name in sorted(names(
        "ls cat head tail tac nl wc stat file du realpath readlink cut uniq sort comm join paste fold column"
        " rev tree xxd find od hexdump base64 md5sum sha1sum sha256sum sha512sum cksum"
    ))},
    "df": f"df {FILE}", "date": f"date -r {FILE}", "diff": f"diff {FILE} open/o.txt", "cmp": f"cmp open/o.txt {FILE}",
    "grep": f"grep x {FILE}", "egrep": f"egrep x {FILE}", "fgrep": f"fgrep x {FILE}", "rg": f"rg x {FILE}",
    "sed": f"sed -n p {FILE}", "jq": f"jq . {FILE}",
}  # fmt: skip
OF_NO_FILE = names(
    "pwd whoami id groups uname arch nproc hostname uptime free basename dirname tr true false : exit"
    " sleep seq printf which type"
)
EDITING = {
    "mv": (f"mv {FILE} y", DENIED, ASKED),
    "cp": (f"cp {FILE} y", DENIED, ASKED),
    "sed": (f"sed -i.bak s/x/y/ {FILE}", DENIED, ASKED),
    # These four show nothing of it, and leave nothing of it elsewhere.
    "mkdir": (f"mkdir {FILE}", EDITED, EDITED),
    "touch": (f"touch {FILE}", EDITED, EDITED),
    "rm": (f"rm {FILE}", EDITED, EDITED),
    "rmdir": (f"rmdir {FILE}", EDITED, EDITED),
}
GIT_OF_A_FILE = {
    "log": f"git log -p {FILE}", "show": f"git show HEAD:{FILE}", "whatchanged": f"git whatchanged -p {FILE}",
    "diff": f"git diff {FILE}", "diff-tree": f"git diff-tree -p HEAD {FILE}", "blame": f"git blame {FILE}",
    "grep": f"git grep x {FILE}", "cat-file": f"git cat-file -p HEAD:{FILE}", "stash show": "git stash show -p",
    "stash list": "git stash list -p", "reflog show": "git reflog show -p",
}  # fmt: skip
GIT_OF_NAMES = names(
    "status reflog shortlog rev-parse rev-list ls-files ls-tree branch tag remote describe show-ref for-each-ref"
    " merge-base name-rev check-ignore count-objects version"
) | {"worktree list", "remote get-url"}
"""They print names, messages and numbers."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    for name in (FILE, "private/p.txt", "parent/private/s.txt", "parent/open.txt", "open/o.txt", "a/deep/hidden.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    (root / "to_secret").symlink_to(FILE)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


async def _said(line: str, root: Path, behavior: str, *rules: str) -> tuple[str, ...]:
    """In each mode."""
    toolbox, said = Toolbox(default_tools()), []
    for mode in MODES:
        made = tuple(
            PermissionRule(tool_name="Read", rule_content=rule, behavior=Behavior(behavior)) for rule in rules or RULES
        )
        rehearsal = Rehearsal(toolbox, PermissionContext(mode=PermissionMode(mode), rules=made), root)
        said.append((await rehearsal.decide("Bash", json.dumps({"command": line}))).behavior)
    return tuple(said)


def test_every_entry_of_the_positive_list_has_its_row() -> None:
    assert set(READING) | OF_NO_FILE == set(PROGRAMS)
    assert set(EDITING) == set(EDITORS)
    assert set(GIT_OF_A_FILE) | GIT_OF_NAMES == set(GIT)
    assert RIPGREP


@pytest.mark.parametrize("line", [*READING.values(), *GIT_OF_A_FILE.values()])
async def test_what_reads_a_file_never_passes_a_rule_about_reading(line: str, root: Path) -> None:
    denied, asked = await _said(line, root, "deny"), await _said(line, root, "ask")

    assert "allow" not in denied
    assert asked == ASKED
    assert denied == DENIED or "-p" in line  # what looks through all that changed may match, and asks


@pytest.mark.parametrize(("line", "denied", "asked"), EDITING.values())
async def test_what_edits_is_held_against_rules_about_reading_if_content_goes_elsewhere(
    line: str, denied: tuple[str, ...], asked: tuple[str, ...], root: Path
) -> None:
    assert await _said(line, root, "deny") == denied
    assert await _said(line, root, "ask") == asked


MOVED = [
    "mv private public", "mv private/p.txt q", "mv -t open secret.txt", "mv -T private q", "mv ./private/ q",
    "mv -- secret.txt y", "cd private && mv p.txt ../q", "mkdir d && mv secret.txt d/", "mv open/o.txt secret.txt q",
    "mv parent q", "mv parent/private q", "mv a q", "mv a/deep q", "cd a && mv deep ../q", "mv -t open a", "mv p* q",
    "mv par?nt q", "mv par[e]nt q", "mv {open,parent} q", "mv -b parent q", "mv --backup=t secret.txt q",
    "sed -i.bak s/x/y/ secret.txt", "sed -i s/x/y/ to_secret", "sed -i.bak s/x/y/ private/*.txt",
    "sed -n -i.b p secret.txt", "sed --in-place=.o s/x/y/ secret.txt", "cp to_secret y", "cp -r parent q",
    "cp -a . ../q", "cp -rl a q", "cp -b secret.txt y", "cp --backup open/o.txt secret.txt", "ln secret.txt y",
    "ln -s secret.txt y", "install secret.txt y", "ln -s private p", "rename s/secret/open/ secret.txt",
    "rename secret open secr*", "tar cf x.tar parent", "tar -C parent -cf x.tar .", "zip -r x.zip a", "rsync -a a/ q",
    "dd if=secret.txt of=y", "tee y < secret.txt", "split secret.txt y", "csplit secret.txt 1",
    "truncate -r secret.txt y", "perl -i.bak -pe s/x/y/ secret.txt", "perl -i.bak -pe s/x/y/ s*.txt",
    "patch -b secret.txt x.diff", "patch --backup -i x.diff secret.txt", "sort -o y secret.txt", "uniq secret.txt y",
    "git mv secret.txt y", "git mv parent q", "git -C . mv a q", "git stash push secret.txt",
    "git archive HEAD secret.txt", "git clone . q", "shuf -o y secret.txt", "ruby -i.bak -pe 1 secret.txt",
    "awk -i inplace 1 secret.txt", "xargs mv parent q", "nice mv parent q", "sudo mv parent q",
    "bash -c 'mv parent q'", "timeout 5 cp -r a q", "find . -exec mv parent q ;", "cat secret.txt > y",
    "cp secret.txt /dev/stdout", "gzip secret.txt", "gzip -c secret.txt", "shred secret.txt", "objcopy secret.txt y",
    "vim secret.txt", "ed secret.txt", "ex -c 'w y' secret.txt",
]  # fmt: skip


@pytest.mark.parametrize("line", MOVED)
async def test_content_that_a_rule_closes_gets_no_other_name(line: str, root: Path) -> None:
    assert await _said(line, root, "deny") == DENIED
    assert await _said(line, root, "ask") == ASKED


@pytest.mark.parametrize("program", sorted(CARRIERS))
async def test_what_copies_folders_is_held_against_rules_about_what_lies_below(program: str, root: Path) -> None:
    assert await _said(f"{program} -r parent q", root, "deny") == DENIED
    assert await _said(f"{program} -x ./a/ q", root, "ask", "**/hidden.txt") == ASKED
    if program not in REPOSITORY_CARRIERS:
        assert "allow" in await _said(f"{program} -r open q", root, "deny")


@pytest.mark.parametrize("program", sorted(REPOSITORY_CARRIERS - CARRIERS))
async def test_what_copies_out_of_a_repository_without_naming_it_asks(program: str, root: Path) -> None:
    assert await _said(f"{program} HEAD", root, "deny") == ASKED
    assert "allow" in await _said(f"{program} HEAD", root, "deny", "/elsewhere/**")


async def test_a_rule_that_leads_through_a_link_closes_what_it_leads_to(root: Path) -> None:
    (root / "way").symlink_to("parent/private")

    assert await _said("mv parent q", root, "deny", "way/s.txt") == DENIED
    assert await _said("mv open q", root, "deny", "way/s.txt") == EDITED


@pytest.mark.parametrize("name", ["id_rsa", "server.key", ".env", ".docker"])
async def test_secrets_are_moved_by_nobody_unasked(name: str, root: Path) -> None:
    path = root / name / "config.json" if name == ".docker" else root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x\n")

    for line in (f"mv {name} y", f"mv ./{name} open", f"sed -i.bak s/x/y/ {path.relative_to(root)}"):
        assert await _said(line, root, "deny", "nothing") == ("ask", "ask", "deny", "allow", "deny")


async def test_other_files_are_moved_as_before(root: Path) -> None:
    for line in (
        "mv open/o.txt q",
        "mv open q",
        "mv parent/open.txt q",
        "sed -i.bak s/x/y/ open/o.txt",
        "mv -t open q",
    ):
        assert await _said(line, root, "deny") == EDITED
