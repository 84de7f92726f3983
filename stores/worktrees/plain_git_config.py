"""The configuration of a repository as it may be where git is to run: it names neither a program nor a file."""

import re

from longhaul.agent.plain.text import names

CONFIG_CAP_BYTES = 100_000
_ANY = frozenset({"*"})
_KEYS = {
    "core": names(
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol"
        " safecrlf quotepath abbrev compression bigfilethreshold untrackedcache trustctime checkstat longpaths"
        " protectntfs protecthfs commitgraph preloadindex hookspath fsmonitor"
    ),
    "remote": names("url fetch pushurl push tagopt prune prunetags mirror skipdefaultupdate skipfetchall"),
    "branch": names("remote merge rebase pushremote description vscode-merge-base gh-merge-base autosetupmerge"),
    "user": names("name email signingkey useconfigonly"),
    "commit": names("gpgsign verbose"),
    "tag": names("gpgsign"),
    "pull": names("rebase ff"),
    "push": names("default autosetupremote followtags gpgsign"),
    "fetch": names("prune prunetags parallel"),
    "merge": names("conflictstyle ff"),
    "rebase": names("autostash autosquash updaterefs"),
    "rerere": names("enabled autoupdate"),
    "diff": names("algorithm renames renamelimit colormoved mnemonicprefix noprefix context"),
    "init": names("defaultbranch"),
    "status": names("short branch showuntrackedfiles"),
    "lfs": names("repositoryformatversion"),
    "advice": _ANY,
    "color": _ANY,
    "gc": _ANY,
    "pack": _ANY,
}
"""Keys of a repository's own configuration by section that name neither a program nor a file, or (`core.hooksPath`,
`core.fsmonitor`) are set otherwise for each line that leans on a proof."""
_WITH_NAMES = ("remote", "branch", "color")
"""Sections that may have a name behind them, as in `[remote "origin"]`; of others that would be another key."""
_LINE = re.compile(
    r'\[(?P<section>[A-Za-z]+)(?: "(?P<name>[^"\\]*)")?\]|(?P<key>[A-Za-z][A-Za-z0-9-]*)(?:[ \t]*=(?P<value>[^\\]*))?'
)


def is_plain_config(text: str) -> bool:
    """Whether each line of a repository's configuration is known to name neither a program nor a file."""
    known: frozenset[str] = frozenset()
    for raw in text.split("\n"):
        line = raw.strip(" \t")
        if not line or line[0] in "#;":
            continue
        read = _LINE.fullmatch(line)
        if read is None:
            return False
        if read["section"]:
            section = read["section"].lower()
            known = _KEYS.get(section, frozenset()) if read["name"] is None or section in _WITH_NAMES else frozenset()
        elif not _is_known(read["key"].lower(), (read["value"] or "").strip(), known):
            return False
    return True


def _is_known(key: str, value: str, known: frozenset[str]) -> bool:
    if key == "bare" and value != "false":
        return False
    return key in known or known is _ANY
