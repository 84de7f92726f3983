"""The variables that commands see: few of the worker's own, and for those that run unasked, none that runs code."""

import os
from collections.abc import Mapping

from longhaul.agent.plain.text import names

INHERITED = frozenset({"PATH", "HOME", "LANG", "LANGUAGE", "TMPDIR", "TZ", "USER", "LOGNAME", "VIRTUAL_ENV"})
"""What a command may know of the worker's environment, beside LC_*: the rest may be a key, or steer a program."""

_GIT_SETTINGS = {
    "core.fsmonitor": "false",
    "safe.bareRepository": "explicit",
    "core.hooksPath": "/dev/null",
    "log.showSignature": "false",
    "stash.showPatch": "false",
    "diff.submodule": "short",
    "submodule.recurse": "false",
    "diff.ignoreSubmodules": "all",
    "diff.autoRefreshIndex": "false",
}
"""What no repository, nor the user's own configuration, sets otherwise for commands that run unasked."""

HARDENED = {
    "GIT_CONFIG_COUNT": str(len(_GIT_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(_GIT_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_GIT_SETTINGS.values())},
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
}
"""For commands that run unasked as read-only: the proof holds for git only while no repository can name a program, and
for pip only while it does not ask its index for a newer one."""


def scrubbed(environment: Mapping[str, str], granted: frozenset[str] | set[str] = INHERITED) -> dict[str, str]:
    """The variables of `environment` that a command may see, and the ones that it always gets."""
    kept = {name: value for name, value in environment.items() if name in granted or name.startswith("LC_")}
    kept["PATH"] = _without_relative(kept.get("PATH", ""))
    return {**kept, "SHELL": "/bin/bash", "TERM": "dumb"}


def hardened(environment: Mapping[str, str]) -> dict[str, str]:
    """For a command that was proven: without any variable that changes which code runs, also if it was granted."""
    kept = {name: value for name, value in environment.items() if name in INHERITED or not dangerous_variable(name)}
    return kept | HARDENED


def reads_as_utf8() -> bool:
    """Whether bash takes UTF-8 for one letter or for bytes, none of which ends a word; other encodings may do so."""
    chosen = (os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next(filter(None, chosen), "C")
    return locale in ("C", "POSIX") or locale.lower().partition("@")[0].endswith((".utf-8", ".utf8"))


def _without_relative(path: str) -> str:
    """PATH without the entries that lead into whatever folder a command stands in: `ls` would be what lies there."""
    kept = [folder for folder in path.split(os.pathsep) if folder.startswith("/")]
    return os.pathsep.join(kept) or os.defpath


_DANGEROUS_VARIABLES = names(
    "PATH IFS ENV BASH_ENV PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS PAGER EDITOR VISUAL LESSOPEN LESSCLOSE CDPATH"
    " NODE_OPTIONS NODE_PATH PERL5LIB PERL5OPT PERL5DB RUBYOPT RUBYLIB BROWSER HOME JAVA_TOOL_OPTIONS _JAVA_OPTIONS"
    " JDK_JAVA_OPTIONS MANPAGER MANOPT TAR_OPTIONS GREP_OPTIONS RIPGREP_CONFIG_PATH LESS LESSKEY SSH_ASKPASS CC CXX"
    " MAKEFLAGS MFLAGS GNUMAKEFLAGS RUSTC_WRAPPER RUSTFLAGS CARGO_HOME GOFLAGS LUA_INIT R_PROFILE PHPRC GCONV_PATH"
    " LOCPATH GLIBC_TUNABLES NLSPATH TERMINFO INPUTRC ZDOTDIR FPATH SHELL"
)


def dangerous_variable(name: str) -> str:
    """Why setting this variable for a command needs a person."""
    if name in _DANGEROUS_VARIABLES or name.startswith(
        ("LD_", "DYLD_", "GIT_", "PYTHON", "BASH_FUNC", "npm_config_", "NPM_CONFIG_")
    ):
        return f"setting {name} changes which code runs"
    return ""
