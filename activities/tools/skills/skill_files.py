"""Skills and project instructions as files: found below their folders, read within limits, and without following links.

What lies in a workspace is hostile. A file that can't be used is left out, with a line in the log, and never an error:
otherwise whoever writes to the workspace could stop its sessions.
"""

import logging
import os
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import yaml

from longhaul.activities.attempt.workspaces import nearest_folder, not_here
from longhaul.activities.tool import ToolError
from longhaul.activities.tools.files import opened
from longhaul.agent.values.spec.knowledge import LOADER, TRIGGER_CAP_CHARS, TRIGGERS_CAP, ProjectFile, Skill

log = logging.getLogger(__name__)

SKILL_FILE = "SKILL.md"
PROJECT_FILES = ("AGENTS.md", ".agents/microagents/repo.md", ".openhands/microagents/repo.md")
MOST_SKILLS = 100
MOST_FOLDERS = 1_000
MOST_FILES = 200
TEXT_CAP_BYTES = 500_000
"""Of a file of a skill that is loaded by name; what is too long for the context is cut and kept as every result is."""
SKILL_CAP_BYTES = 20_000
"""Of a skill that is shown when it is triggered, and of each project file: they are paid for with every call."""
NAME_CAP_CHARS = 64
DESCRIPTION_CAP_CHARS = 1_024

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<front>.{0,10000}?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def skill_folders(names: Sequence[str], root: Path) -> list[Path]:
    """The folders that an agent names, resolved; relative ones are in its workspace at `root`. Raises NotHere for an
    absolute one that this worker does not have."""
    folders = (name for name in names if not name.startswith(LOADER))
    return [folder for name in folders if (folder := _folder(name, root)) is not None]


def _folder(name: str, root: Path) -> Path | None:
    """Where a folder of skills is. One in the workspace may be missing, or lead elsewhere: it then counts as empty, for
    whoever can write there must not be able to stop the session."""
    try:
        folder = (root / name).resolve()
        there = folder.is_dir()
    except (OSError, ValueError):  # ValueError: a name that no path can have
        folder, there = root, False
    if not Path(name).is_absolute():
        return folder if there and folder.is_relative_to(root) else None
    if not there:
        raise not_here(f"there is no folder {name!r} with skills on this worker{nearest_folder(Path(name))}")
    return folder


def find_skills(folders: Sequence[Path], with_text: Collection[str] = ()) -> list[Skill]:
    """Those of all folders, in their order, sub-folders by name. Of two with one name the first counts. Blocking.

    A skill without triggers of its own has its body only when it is named in `with_text`.
    """
    found: dict[str, Skill] = {}
    for path in (path for folder in folders for path in _skill_files(folder)):
        skill = _read_skill(path, with_text)
        if skill is None:
            continue
        if skill.name in found:
            log.warning("the skill %r in %s is left out: another one has this name", skill.name, path)
        elif len(found) == MOST_SKILLS:
            log.warning("only the first %s skills are used", MOST_SKILLS)
            break
        else:
            found[skill.name] = skill
    return list(found.values())


def find_project_files(root: Path) -> list[ProjectFile]:
    """The project's own instructions in the workspace at `root` (resolved). Blocking."""
    found: list[ProjectFile] = []
    for name in PROJECT_FILES:
        text = _read(root / name)
        if text is not None and (said := _split(text)[1].strip()):
            found.append(ProjectFile(name, said))
    return found


def skill_text(path: Path) -> str:
    """A file of a skill (resolved), of its SKILL.md what comes after the front matter. Blocking. Raises ToolError in
    words for the model."""
    try:
        with opened(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            text = file.read(TEXT_CAP_BYTES).decode("utf-8", "replace")
    except FileNotFoundError as error:
        raise ToolError(f"there is no file {path}") from error
    return _split(text)[1].strip() if path.name == SKILL_FILE else text


def files_of(folder: Path) -> list[str]:
    """The files of a skill, by their paths below its folder; hidden ones are left out, and no link is followed."""
    found: list[str] = []
    for place, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = Path(place)
        files = (here / name for name in sorted(names) if not name.startswith("."))
        shown = (str(path.relative_to(folder)) for path in files if path.is_file() and not path.is_symlink())
        found += [name for name in shown if name.isprintable()]
        if len(found) >= MOST_FILES:
            break
    return found[:MOST_FILES]


def _skill_files(folder: Path) -> Iterator[Path]:
    if (folder / SKILL_FILE).is_file():
        yield folder / SKILL_FILE
        return
    try:
        with os.scandir(folder) as entries:
            near = islice(entries, MOST_FOLDERS)
            names = sorted(entry.name for entry in near if entry.is_dir(follow_symlinks=False))
    except OSError as error:
        log.warning("the skills in %s can't be listed: %s", folder, error.strerror)
        return
    yield from (path for name in names if (path := folder / name / SKILL_FILE).is_file())


def _read_skill(path: Path, with_text: Collection[str]) -> Skill | None:
    text = _read(path)
    if text is None:
        return None
    front, body = _split(text)
    name, description = _line(front.get("name"), NAME_CAP_CHARS), _line(front.get("description"), DESCRIPTION_CAP_CHARS)
    triggers = _triggers(front.get("triggers"))
    if not str(path).isprintable():
        log.warning("%a is not used: its path would not stay on its line in the prompt", str(path))
        return None
    if not name or not (description or triggers):
        log.warning("%s is no skill: its front matter needs a name, and a description or triggers", path)
        return None
    return Skill(name, description, str(path), triggers, body.strip() if triggers or name in with_text else "")


def _read(path: Path) -> str | None:
    """The text, cut with a mark when it is long; None when there is none that could be read."""
    try:
        with opened(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(SKILL_CAP_BYTES + 1)
    except FileNotFoundError:
        return None
    except (ToolError, OSError) as error:
        log.warning("%s is not used: %s", path, error)
        return None
    text = data[:SKILL_CAP_BYTES].decode("utf-8", "replace")
    return text if len(data) <= SKILL_CAP_BYTES else f"{text}\n(It is longer; the rest is in {path}.)"


def _split(text: str) -> tuple[dict[str, Any], str]:
    """Front matter and the rest. Front matter that is no YAML mapping counts as empty."""
    found = _FRONT.match(text)
    if found is None:
        return {}, text
    try:
        # Strings, lists and mappings alone: nothing that is constructed could raise or cost anything.
        front = yaml.load(found["front"], Loader=yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, RecursionError):
        front = None
    return cast(dict[str, Any], front) if isinstance(front, dict) else {}, text[found.end() :]


def _line(value: object, cap_chars: int) -> str:
    """One line, whatever stands there: a description must not look like further instructions."""
    return " ".join(value[: cap_chars * 2].split())[:cap_chars] if isinstance(value, str) else ""


def _triggers(value: object) -> tuple[str, ...]:
    listed = cast(list[object], value) if isinstance(value, list) else [value]
    words = (_line(word, TRIGGER_CAP_CHARS) for word in listed[:TRIGGERS_CAP])
    return tuple(word for word in words if word.strip("* "))
