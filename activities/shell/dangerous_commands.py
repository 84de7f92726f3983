"""Commands that a person should look at whatever the rules say, and programs that run another one: where the inner
command begins, so that rules see it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from longhaul.agent.permission.call_analysis import INTERPRETERS
from longhaul.agent.plain.text import names

_SHELLS = names("sh bash dash zsh ksh ash")


@dataclass(frozen=True, slots=True)
class _Wrapper:
    switches: str = ""
    """Short flags without a value."""
    valued: str = ""
    """Short flags with a value."""
    operands: int = 0
    """Words of its own before the command (the seconds of `timeout`)."""
    harmless: bool = False
    """Adds nothing to what the inner command does."""
    assignments: bool = False
    script: bool = False
    """May take its command as text for a shell (`watch 'a; b'`, `flock x -c 'a'`)."""


_WRAPPERS: dict[str, _Wrapper] = {
    "timeout": _Wrapper("vf", "ks", operands=1, harmless=True),
    "nice": _Wrapper("", "n", harmless=True),
    "time": _Wrapper("p", harmless=True),
    "stdbuf": _Wrapper("", "ioe", harmless=True),
    "command": _Wrapper("", harmless=True),
    "ionice": _Wrapper("t", "cn", harmless=True),
    "nohup": _Wrapper(),
    "setsid": _Wrapper("cfw"),
    "exec": _Wrapper("cl", "a"),
    "builtin": _Wrapper(),
    "env": _Wrapper("i0v", "uC", assignments=True),
    "sudo": _Wrapper("AbEeHnPSiskK", "ugpCcDhRrTt", assignments=True),
    "doas": _Wrapper("nsL", "uC"),
    "xargs": _Wrapper("0rtpxo", "IiLlnPsEead"),
    "watch": _Wrapper("bcdegtx", "n", script=True),
    "strace": _Wrapper("fqctTyv", "oeps"),
    "ltrace": _Wrapper("fS", "oe"),
    "taskset": _Wrapper("a", "", operands=1),
    "chrt": _Wrapper("bfior", "", operands=1),
    "flock": _Wrapper("nsxu", "wE", operands=1, script=True),
    "chroot": _Wrapper(operands=1),
    "unshare": _Wrapper("muinpUCTfr"),
    "busybox": _Wrapper(),
    "coproc": _Wrapper(),
    "parallel": _Wrapper("k", "jI", script=True),
    "npx": _Wrapper("y", "p"),
    "bunx": _Wrapper(),
    "pkexec": _Wrapper(),
    "systemd-run": _Wrapper("tqPG", "pu"),
    "firejail": _Wrapper(),
    "script": _Wrapper("aefq", "c", script=True),
    "noglob": _Wrapper(),
    "caffeinate": _Wrapper("disu", "tw"),
}
_RUNS_THE_REST = names(
    "bwrap catchsegv cgexec chpst chronic dbus-run-session dumb-init eatmydata fakechroot fakeroot faketime gosu"
    " hyperfine linux32 linux64 nsenter numactl prlimit proxychains proxychains4 rlwrap runuser setarch setpriv"
    " setuidgid softlimit ssh-agent su-exec tini torify torsocks unbuffer valgrind xvfb-run"
)
"""Run a command that stands somewhere behind options and words of their own, which are not read here."""
_TWO_WORDS = {
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("bundle", "exec"),
    ("npm", "exec"),
    ("pnpm", "exec"),
}
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


@dataclass(frozen=True, slots=True)
class Unwrapped:
    inner: tuple[tuple[str, ...], ...] = ()
    """Commands that are run. More than one when it is not clear where the inner one begins: rules see them all."""
    clear: bool = False
    """The wrapper adds nothing and `inner` is certain: the call does what `inner[0]` does."""
    script: str = ""
    """Shell text that is run (`sh -c`, `eval`)."""


def program_name(word: str) -> str:
    """The name that rules know a program by: the last part of its path."""
    return word.rsplit("/", 1)[-1]


def unwrap(words: tuple[str, ...]) -> Unwrapped:
    """What `words` runs beside itself; empty for a program that is no wrapper."""
    name = program_name(words[0])
    if name == "eval":
        return Unwrapped(script=" ".join(words[1:]))
    if name in _SHELLS or name == "su":
        return Unwrapped(script=_after_c(words))
    if name == "find":
        return Unwrapped(tuple(words[at + 1 :] for at, word in enumerate(words[:-1]) if word in _FIND_RUNS))
    if words[:2] in _TWO_WORDS:
        return Unwrapped(_every_suffix(words[2:]))
    if name in _RUNS_THE_REST:
        return Unwrapped(_every_suffix(words[1:]), script=_all_text(words))
    wrapper = _WRAPPERS.get(name)
    return Unwrapped() if wrapper is None else _unwrap(wrapper, words)


def _unwrap(wrapper: _Wrapper, words: tuple[str, ...]) -> Unwrapped:
    begin = _inner_begin(wrapper, words)
    if begin is None:
        return Unwrapped(_every_suffix(words[1:]), script=_all_text(words))
    if begin >= len(words):
        return Unwrapped(script=_all_text(words) if wrapper.script else "")
    if wrapper.script:
        return Unwrapped((words[begin:],), script=_all_text(words))
    return Unwrapped((words[begin:],), clear=wrapper.harmless and "/" not in words[0])


def _inner_begin(wrapper: _Wrapper, words: tuple[str, ...]) -> int | None:
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        if word.startswith("--"):
            return None
        for index, letter in enumerate(word[1:], start=2):
            if letter in wrapper.valued:
                at += 0 if word[index:] else 1
                break
            if letter not in wrapper.switches:
                return None
    at += wrapper.operands
    while wrapper.assignments and at < len(words) and "=" in words[at]:
        at += 1
    return at


def _every_suffix(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Each place where the inner command may begin (at most 12): good for deny rules, and no allow rule covers them."""
    return tuple(words[at:] for at in range(min(len(words), 12)) if not words[at].startswith("-"))


def _all_text(words: tuple[str, ...]) -> str:
    """What a shell may read out of the arguments, each on a line: `-S` and `--split-string=` cut off."""
    starts = ("--split-string=", "--command=", "-S", "-c")
    return "\n".join(
        next((word[len(start) :] for start in starts if word.startswith(start)), word) for word in words[1:]
    )


def _after_c(words: tuple[str, ...]) -> str:
    """The script of `sh -c SCRIPT`, of `bash -lc SCRIPT` too."""
    for at, word in enumerate(words[1:-1], start=1):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            return words[at + 1]
    return ""


_ALWAYS = {
    **dict.fromkeys(("sudo", "doas", "su", "pkexec", "runas"), "acts as another user"),
    **dict.fromkeys(("dd", "shred", "wipefs", "fdisk", "sfdisk", "parted", "mkswap", "format"), "can overwrite a disk"),
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff", "telinit"), "stops the machine"),
    **dict.fromkeys(("killall", "pkill"), "ends processes by name"),
    **dict.fromkeys(("chroot", "nsenter", "mount", "umount", "insmod", "modprobe"), "changes the system"),
    **dict.fromkeys(
        ("crontab", "at", "visudo", "useradd", "usermod", "passwd", "chsh"), "changes what the system runs"
    ),
}


def danger_of(words: tuple[str, ...]) -> str:
    """Why the command needs a person, as the end of a sentence about it; empty when nothing was seen."""
    name = program_name(words[0])
    if name in _ALWAYS:
        return f"`{name}` {_ALWAYS[name]}"
    if name.startswith("mkfs"):
        return f"`{name}` overwrites a disk"
    check = _CHECKS.get(name)
    return "" if check is None else check(words[1:])


def piped_into_interpreter(words: tuple[str, ...]) -> str:
    """`… | sh`: what is run can't be seen here."""
    name = program_name(words[0])
    reads_script = name in INTERPRETERS and all(word.startswith("-") and word not in ("-c", "-m") for word in words[1:])
    return f"what `{name}` would run comes through a pipe" if reads_script else ""


def _has(arguments: tuple[str, ...], letters: str, *names: str) -> bool:
    """Whether a short flag of `letters` is given, also in a bundle, or a long one that one of `names` begins
    with."""
    for word in arguments:
        if word.startswith("--"):
            stem = word[2:].split("=", 1)[0]
            if stem and any(name.startswith(stem) for name in names):
                return True
        elif word.startswith("-") and any(letter in word[1:] for letter in letters):
            return True
    return False


def _rm(arguments: tuple[str, ...]) -> str:
    if _has(arguments, "rR", "recursive"):
        return "`rm` with -r removes whole folders"
    return _wide_target(arguments)


def _wide_target(arguments: tuple[str, ...]) -> str:
    for word in arguments:
        bare = word.rstrip("/") or "/"
        child_of_root = bare.startswith("/") and bare.count("/") == 1
        if bare in ("*", "~", ".", "..", ".*") or child_of_root or bare.endswith(("/*", "/..", "/.*")):
            return f"removing {word!r} may take far more than meant"
    return ""


def _chmod(arguments: tuple[str, ...]) -> str:
    if _has(arguments, "R", "recursive"):
        return "`chmod -R` changes whole folders"
    open_to_all = any(
        word.lstrip("0") in ("777", "666") or word in ("a+w", "o+w", "a+rwx", "a=rwx") for word in arguments
    )
    return "`chmod` opens a file to everyone" if open_to_all or any("+s" in word for word in arguments) else ""


def _chown(arguments: tuple[str, ...]) -> str:
    return "changing owners recursively touches whole folders" if _has(arguments, "R", "recursive") else ""


def _kill(arguments: tuple[str, ...]) -> str:
    forced = {"-9", "-KILL", "-SIGKILL", "9", "KILL", "SIGKILL"}
    return "`kill -9` ends a process without asking it" if forced & set(arguments[:2]) or "-1" in arguments[1:] else ""


def _find(arguments: tuple[str, ...]) -> str:
    return "`find -delete` removes all that it finds" if "-delete" in arguments else ""


def _git(arguments: tuple[str, ...]) -> str:
    for at, word in enumerate(arguments):
        if word.startswith(("-c", "--config-env", "--exec-path")):
            return f"`git {word}` sets configuration that can run programs"
        if word in _GIT_CHECKS:
            return _GIT_CHECKS[word](arguments[at + 1 :])
        if not word.startswith("-") and (at == 0 or arguments[at - 1] not in ("-C", "--git-dir", "--work-tree")):
            return ""
    return ""


def _push(arguments: tuple[str, ...]) -> str:
    forced = _has(arguments, "f", "force", "force-with-lease", "force-if-includes", "mirror", "delete", "prune")
    forced = forced or _has(arguments, "d") or any(word.startswith(("+", ":")) for word in arguments)
    return "`git push` with force or deletion rewrites what others have" if forced else ""


def _reset(arguments: tuple[str, ...]) -> str:
    return "`git reset --hard` throws work away" if _has(arguments, "", "hard", "merge", "keep") else ""


def _clean(arguments: tuple[str, ...]) -> str:
    return "`git clean` with force deletes files that git does not know" if _has(arguments, "f", "force") else ""


def _checkout(arguments: tuple[str, ...]) -> str:
    forced = _has(arguments, "f", "force") or "." in arguments
    return "this throws away changes that are not committed" if forced else ""


def _branch(arguments: tuple[str, ...]) -> str:
    return "`git branch` with force loses commits" if _has(arguments, "DfM", "force") else ""


def _config(arguments: tuple[str, ...]) -> str:
    return "git configuration can run programs"


def _rewrite(arguments: tuple[str, ...]) -> str:
    return "this rewrites or drops history"


_GIT_CHECKS: dict[str, Callable[[tuple[str, ...]], str]] = {
    "push": _push,
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "restore": _checkout,
    "switch": _checkout,
    "branch": _branch,
    "config": _config,
    "filter-branch": _rewrite,
    "filter-repo": _rewrite,
    "update-ref": _rewrite,
    "gc": _rewrite,
}
_CHECKS: dict[str, Callable[[tuple[str, ...]], str]] = {
    "rm": _rm,
    "rmdir": _wide_target,
    "unlink": _wide_target,
    "chmod": _chmod,
    "chown": _chown,
    "chgrp": _chown,
    "kill": _kill,
    "find": _find,
    "git": _git,
}
