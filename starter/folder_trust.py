"""Decides whether the files of a folder count, `longhaul.toml` and `agents/`: they are trusted by their content
alone.
"""

import hashlib
import json
import os
import shlex
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from longhaul.agent.plain.errors import BadSetup

SETTINGS, AGENTS = "longhaul.toml", "agents"
VARIABLE = "LONGHAUL_TRUST"
MOST_BYTES = 1_000_000
"""Of one file."""
MOST_AGENTS = 500
LONGEST_VALUE_CHARS = 200
_YES, _NO = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


class BadSettingsFile(BadSetup):
    """A settings file can't be used, or sets what it may not. The sentence names file and key, and what to do."""


class Untrusted(BadSetup):
    """A folder's file would count, but nobody has trusted the folder."""

    def __init__(self, found: "FolderFiles") -> None:
        command = f"longhaul trust {shlex.quote(str(found.folder))}"
        why = "has changed since it was trusted" if found.was_trusted else "is not trusted"
        named = [name for name in found.files if name.endswith(".toml")]
        which = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if named[3:] else "")
        super().__init__(
            f"{str(found.folder)!r} {why}, and {which} would be used here; read it, then "
            f"`{command}` ({VARIABLE}=1 trusts it this once, {VARIABLE}=0 ignores it)"
        )
        self.found = found


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """What of a folder may count, read once: what is asked about is what is used."""

    folder: Path
    files: Mapping[str, bytes]
    """By their paths as seen from the folder: its settings, its agents, and the prompts that these name."""

    @property
    def digest(self) -> str:
        """Of each path and each content; it stands for all of them together."""
        parts = [part for name in sorted(self.files) for part in (os.fsencode(name), self.files[name])]
        return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()

    def text(self, path: Path) -> str:
        """Raises OSError where it was not there, as the file itself would, and UnicodeDecodeError."""
        if str(path) not in self.files:
            raise FileNotFoundError(2, os.strerror(2), str(path))
        return self.files[str(path)].decode("utf-8")

    @property
    def is_trusted(self) -> bool:
        return _asked_to_trust() is True or _remembered(self.folder) == self.digest

    @property
    def was_trusted(self) -> bool:
        return bool(_remembered(self.folder))

    def remember(self) -> None:
        """From now on this content counts, here. Raises OSError."""
        place = _place(self.folder)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as written:
            written.write(f"{self.digest}\n".encode() + os.fsencode(self.folder) + b"\n")
        Path(written.name).replace(place)

    def says(self) -> Iterator[str]:
        """Each file, and what it sets, a line each. Not made harmless."""
        for name, content in self.files.items():
            yield name
            if not name.endswith(".toml"):
                yield f"  {len(content):,} bytes of a system prompt"
                continue
            try:
                yield from (f"  {line}" for line in _settings_in("", tomllib.loads(content.decode("utf-8"))))
            except ValueError as error:  # UnicodeDecodeError and TOMLDecodeError are such
                yield f"  can't be read: {error}"


def forget(folder: Path) -> None:
    """Nothing of it counts any more. Raises OSError."""
    _place(folder.resolve()).unlink(missing_ok=True)


def look(folder: Path) -> FolderFiles:
    """All that may count of it. Raises BadSettingsFile for what can't be read."""
    folder, files = folder.resolve(), dict[str, bytes]()
    agents = sorted((folder / AGENTS).glob("*.toml"))
    if len(agents) > MOST_AGENTS:
        raise BadSettingsFile(f"{folder / AGENTS} contains more than {MOST_AGENTS} agents; remove some")
    for path in (folder / SETTINGS, *agents):
        _take(files, folder, path.relative_to(folder))
    for path in agents:
        if prompt := _prompt_file(files.get(str(path.relative_to(folder)), b"")):
            _take(files, folder, Path(AGENTS) / prompt)
    return FolderFiles(folder, files)


def trusted(folder: Path) -> FolderFiles:
    """The same. Raises Untrusted as well."""
    found = look(folder)
    if not found.is_trusted:
        raise Untrusted(found)
    return found


def is_left_out() -> bool:
    """Whether this process takes nothing of any folder. Raises BadSettingsFile for a wrong value of the variable."""
    return _asked_to_trust() is False


def table_of(path: Path, content: bytes) -> dict[str, Any]:
    """Raises BadSettingsFile."""
    try:
        return tomllib.loads(content.decode("utf-8"))
    except ValueError as error:
        raise BadSettingsFile(f"{str(path)!r} is no TOML: {error}") from error


def _asked_to_trust() -> bool | None:
    said = os.environ.get(VARIABLE, "").strip().lower()
    if said and said not in _YES | _NO:
        raise BadSettingsFile(
            f"{VARIABLE} is {said!r}; set it to 1 (trust the folder) or 0 (leave it out), or unset it"
        )
    return said in _YES if said else None


def _take(files: dict[str, bytes], folder: Path, name: Path) -> None:
    path = folder / name
    if not path.is_file():
        return
    try:
        with path.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadSettingsFile(f"{str(path)!r} can't be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise BadSettingsFile(f"{str(path)!r} has more than {MOST_BYTES:,} bytes; make it shorter")
    files[str(name)] = content


def _prompt_file(agent: bytes) -> str:
    try:
        named = tomllib.loads(agent.decode("utf-8")).get("system_prompt_file")
    except ValueError:  # whoever names this agent is told
        return ""
    return named if isinstance(named, str) and "\0" not in named else ""


def _settings_in(prefix: str, value: object) -> Iterator[str]:
    """`permission.rules[0].tool_name = "Bash"`: nothing is out of sight in a long line."""
    if isinstance(value, dict) and value:
        for key, inner in cast(dict[str, object], value).items():
            yield from _settings_in(f"{prefix}.{key}" if prefix else key, inner)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in cast(list[object], value)):
        for number, item in enumerate(cast(list[object], value)):
            yield from _settings_in(f"{prefix}[{number}]", item)
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
        rest = f"… ({len(text):,} characters)" if len(text) > LONGEST_VALUE_CHARS else ""
        yield f"{prefix} = {text[:LONGEST_VALUE_CHARS]}{rest}"


def _place(folder: Path) -> Path:
    """Not in `data_dir`: hosts may share that one, and `longhaul dev --data-dir` gives its worker another."""
    home = Path(os.environ.get("XDG_DATA_HOME", ""))
    base = home if home.is_absolute() else Path.home() / ".local" / "share"
    return base / "longhaul" / "trusted" / hashlib.sha256(os.fsencode(folder)).hexdigest()


def _remembered(folder: Path) -> str:
    """The digest that was trusted there; empty for none, and where it can't be read."""
    try:
        digest, _, path = _place(folder).read_bytes().partition(b"\n")
    except OSError:
        return ""
    return digest.decode("ascii", "replace") if path == os.fsencode(folder) + b"\n" else ""
