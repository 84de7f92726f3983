"""Programs that run another one: where the inner command begins, so that rules see it."""

from dataclasses import dataclass

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
    return "\n".join(_without_start(word, starts) for word in words[1:])


def _without_start(word: str, starts: tuple[str, ...]) -> str:
    return next((word[len(start) :] for start in starts if word.startswith(start)), word)


def _after_c(words: tuple[str, ...]) -> str:
    """The script of `sh -c SCRIPT`, of `bash -lc SCRIPT` too."""
    for at, word in enumerate(words[1:-1], start=1):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            return words[at + 1]
    return ""
