"""Commands that a person should look at whatever the rules say."""

from collections.abc import Callable

from longhaul.activities.shell.wrappers import program_name
from longhaul.agent.permission.call_facts import INTERPRETERS

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
    """Whether a short flag of `letters` is given, also in a bundle, or a long one that one of `names` begins with."""
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
