"""Skills: found as files or brought by code, and shown to a model by name when it needs one.

Skills and project instructions as files: found below their folders, and read within limits. A link is followed where it
stays in the workspace.

What lies in a workspace is hostile. A file that can't be used is left out, and never an error: otherwise whoever writes
to the workspace could stop its sessions. Each sentence about one goes to the log, and to whoever asks for it.

Skills that code brings: of a database, a service, a package. Agents name a loader as `loader:NAME` among their
skills; workers find it in the modules of LONGHAUL_TOOLS.
"""

import json
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import yaml
from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt.workspaces import nearest_folder, not_here
from longhaul.activities.process.threads import in_own_thread
from longhaul.activities.shell.paths import danger_of_name, further_names, path_use
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput, ToolSetupError
from longhaul.activities.tools.files import opened
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.text import did_you_mean, nearest
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.knowledge import LOADER, TRIGGER_CAP_CHARS, TRIGGERS_CAP, ProjectFile, Skill
from longhaul.stores.loading import module_at, names_in, setting_of

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

_FIELD = re.compile(r"(?P<name>[A-Za-z][\w-]*):[ \t]+(?P<value>[^\s|>].*)\Z")


Note = Callable[[str], None]
"""Hears a sentence about each thing that is not used, or is read otherwise than it is written."""


def _log(sentence: str) -> None:
    log.warning("%s", sentence)


def noted(to: list[str]) -> Note:
    """Both kept and logged."""

    def note(sentence: str) -> None:
        _log(sentence)
        to.append(sentence)

    return note


def _about(path: Path | None, note: Note) -> Note:
    return lambda sentence: note(f"{path}: {sentence}")


def skill_folders(names: Sequence[str], root: Path, note: Note = _log) -> list[Path]:
    """The folders that an agent names, resolved; relative ones are in its workspace at `root`. Raises NotHere for an
    absolute one that this worker does not have."""
    folders = (name for name in names if not name.startswith(LOADER))
    return [folder for name in folders if (folder := _folder(name, root, note)) is not None]


def _folder(name: str, root: Path, note: Note) -> Path | None:
    """Where a folder of skills is. One in the workspace may be missing, or lead elsewhere: it then counts as empty, for
    whoever can write there must not be able to stop the session."""
    try:
        folder = (root / name).resolve()
        there = folder.is_dir()
    except (OSError, ValueError):  # ValueError: a name that no path can have
        folder, there = root, False
    if not Path(name).is_absolute():
        if there and not folder.is_relative_to(root):
            note(f"the folder of skills {name} is not used: it leads out of the workspace")
        return folder if there and folder.is_relative_to(root) else None
    if not there:
        raise not_here(f"there is no folder {name!r} with skills on this worker{nearest_folder(Path(name))}")
    return folder


def find_skills(folders: Sequence[Path], root: Path, with_text: Collection[str] = (), note: Note = _log) -> list[Skill]:
    """Those of all folders, in their order, sub-folders by name. Of two with one name the first counts. Blocking. A
    sub-folder may be a link that stays in the workspace at `root` (resolved), or in the folder of skills.

    A skill without triggers of its own has its body only when it is named in `with_text`.
    """
    found: dict[str, Skill] = {}
    for path in (path for folder in folders for path in _skill_files(folder, root, note)):
        skill = _read_skill(path, with_text, note)
        if skill is None:
            continue
        if skill.name in found:
            note(f"the skill {skill.name!r} in {path} is left out: {found[skill.name].path} has this name")
        elif len(found) == MOST_SKILLS:
            note(f"only the first {MOST_SKILLS} skills are used")
            break
        else:
            found[skill.name] = skill
    return list(found.values())


def find_project_files(root: Path, note: Note = _log) -> list[ProjectFile]:
    """The project's own instructions in the workspace at `root` (resolved). Blocking."""
    found: list[ProjectFile] = []
    for name in PROJECT_FILES:
        path = _followed(root / name, (root,), note)
        text = None if path is None else _read(path, note)
        if text is not None and (said := _split(text, _about(path, note))[1].strip()):
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
    return _split(text, lambda _: None)[1].strip() if path.name == SKILL_FILE else text


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


def _followed(path: Path, rooms: Sequence[Path], note: Note) -> Path | None:
    """Where `path` leads, None where that is in none of these folders (resolved), or is what should not be shown."""
    try:
        target = path.resolve()
    except (OSError, RuntimeError):  # a link that leads to itself
        target = Path("/")
    room = next((room for room in rooms if target.is_relative_to(room)), None)
    if room is None:
        note(f"{path} is not used: it leads out of the workspace")
        return None
    if target != path and (danger := danger_of_name(target, "read", room)):
        note(f"{path} is not used: it leads to {target} ({danger})")
        return None
    return target


def _skill_files(folder: Path, root: Path, note: Note) -> Iterator[Path]:
    if (folder / SKILL_FILE).is_file():
        yield folder / SKILL_FILE
        return
    try:
        with os.scandir(folder) as entries:
            near = islice(entries, MOST_FOLDERS)
            names = sorted(entry.name for entry in near if entry.is_symlink() or entry.is_dir(follow_symlinks=False))
    except OSError as error:
        note(f"the skills in {folder} can't be listed: {error.strerror}")
        return
    below = (_followed(folder / name, (folder, root), note) for name in names)
    yield from (path for one in below if one is not None and (path := one / SKILL_FILE).is_file())


def _read_skill(path: Path, with_text: Collection[str], note: Note) -> Skill | None:
    text = _read(path, note)
    if text is None:
        return None
    front, body = _split(text, _about(path, note))
    name, description = _line(front.get("name"), NAME_CAP_CHARS), _line(front.get("description"), DESCRIPTION_CAP_CHARS)
    value = front.get("triggers")
    listed = cast(list[object], value) if isinstance(value, list) else [value]
    words = (_line(word, TRIGGER_CAP_CHARS) for word in listed[:TRIGGERS_CAP])
    triggers = tuple(word for word in words if word.strip("* "))
    if not str(path).isprintable():
        note(f"{str(path)!a} is not used: its path would not stay on its line in the prompt")
        return None
    if not name or not (description or triggers):
        note(f"{path} is no skill: its front matter needs a name, and a description or triggers")
        return None
    if len(" ".join(front["name"].split())) > NAME_CAP_CHARS:
        note(f"{path}: its name is cut to {NAME_CAP_CHARS} characters, {name!r}")
    return Skill(name, description, str(path), triggers, body.strip() if triggers or name in with_text else "")


def _read(path: Path, note: Note) -> str | None:
    """The text, cut with a mark when it is long; None when there is none that could be read."""
    try:
        with opened(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(SKILL_CAP_BYTES + 1)
    except FileNotFoundError:
        return None
    except (ToolError, OSError) as error:
        note(f"{path} is not used: {error}")
        return None
    text = data[:SKILL_CAP_BYTES].decode("utf-8", "replace")
    return text if len(data) <= SKILL_CAP_BYTES else f"{text}\n(It is longer; the rest is in {path}.)"


def _split(text: str, note: Note) -> tuple[dict[str, Any], str]:
    """Front matter and the rest. Front matter that is no YAML mapping counts as empty."""
    found = _FRONT.match(text)
    if found is None:
        return {}, text
    front = _yaml(found["front"])
    if not isinstance(front, dict):
        # Prose with a colon in it, or brackets with more behind them, as people write them without quotes.
        front = _yaml("\n".join(map(_quoted_where_needed, found["front"].splitlines())))
        how = "is read with quotes around its texts" if isinstance(front, dict) else "counts as empty"
        note(f"its front matter is no YAML mapping, and {how}; texts with a colon or brackets need quotes")
    return cast(dict[str, Any], front) if isinstance(front, dict) else {}, text[found.end() :]


def _yaml(text: str) -> object:
    """None for what is no YAML."""
    try:
        # Strings, lists and mappings alone: nothing that is constructed could raise or cost anything.
        return cast(object, yaml.load(text, Loader=yaml.BaseLoader))  # noqa: S506
    except (yaml.YAMLError, RecursionError):
        return None


def _quoted_where_needed(line: str) -> str:
    field = _FIELD.match(line)
    if field is None or not line.isprintable() or _yaml(line) is not None:
        return line
    return f"{field['name']}: {json.dumps(field['value'].strip(), ensure_ascii=False)}"


def _line(value: object, cap_chars: int) -> str:
    """One line, whatever stands there: a description must not look like further instructions."""
    return " ".join(value[: cap_chars * 2].split())[:cap_chars] if isinstance(value, str) else ""


MOST_SKILLS_OF_A_LOADER = 200
"""Of one loader."""
NAME_CHARS, DESCRIPTION_CHARS, TEXT_CHARS = 64, 1_024, 500_000
SHOWN_CHARS = 20_000
"""Of a text that is shown behind a request: it is paid for with every call."""


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    name: str
    description: str
    """One line that says what the skill is about. The model reads it at all times."""
    text: str
    """The skill's text. The model reads it with the tool Skill when it needs the skill."""
    triggers: tuple[str, ...] = ()
    """Words in a request after which the text is shown automatically."""


class SkillLoader:
    """Loads skills by code. Subclass it, and put an object of it at the top level of a module of LONGHAUL_TOOLS."""

    name: str = ""
    """Name by which agents choose the loader. Empty: the name of its class."""

    def list_skills(self) -> Iterable[LoadedSkill]:
        """All skills as they are now.

        Longhaul calls it in a thread, for each reply and each call of Skill. It should answer within a second or two.
        If it raises, only its own skills are missing, and the model reads that.
        """
        raise NotImplementedError


class SkillLoaders:
    """Those of one worker, by name."""

    def __init__(self, all_: Mapping[str, SkillLoader] | None = None) -> None:
        self._all = dict(all_ or {})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._all)

    def skills(self, named: Sequence[str], with_text: Collection[str] | None = None) -> tuple[list[Skill], list[str]]:
        """Of the loaders among the skills that an agent names; and a sentence for each that failed. Of two with one
        name the first counts. Of a skill without triggers the text is given where `with_text` has its name, or is None.
        Blocking. Raises NotHere for a loader that this worker does not have."""
        found, failed = dict[str, Skill](), list[str]()
        for name in (entry.removeprefix(LOADER) for entry in named if entry.startswith(LOADER)):
            if name not in self._all:
                hint = did_you_mean(name, self._all, "they have")
                raise not_here(
                    f"no skill loader is named {name[:100]!r} on the workers that were asked (LONGHAUL_TOOLS); {hint}"
                )
            try:
                listed = [_skill(loaded, with_text) for loaded in self._all[name].list_skills()]
            except Exception as error:  # an operator's code: its skills are missing, and nothing else
                log.warning("the skill loader %r failed", name, exc_info=True)
                failed.append(f"The skills of {name!r} are missing: their loader failed ({type(error).__name__}).")
                continue
            if len(listed) > MOST_SKILLS_OF_A_LOADER:
                failed.append(f"Of the skills of {name!r} the first {MOST_SKILLS_OF_A_LOADER} are there.")
            for skill in listed[:MOST_SKILLS_OF_A_LOADER]:
                found.setdefault(skill.name, skill)
        return list(found.values()), failed


def load_skill_loaders(names: str) -> SkillLoaders:
    """Those of the modules in `names`, which have been imported for their tools. Raises ToolSetupError for two of one
    name."""
    found = dict[str, SkillLoader]()
    for module in names_in(names):
        for value in vars(module_at(module, setting_of("tool"))).values():
            if not isinstance(value, SkillLoader):
                continue
            value.name = value.name or type(value).__name__
            if found.setdefault(value.name, value) is not value:
                raise ToolSetupError(f"two skill loaders have the name {value.name!r}; rename one")
    return SkillLoaders(found)


def _skill(loaded: object, with_text: Collection[str] | None) -> Skill:
    """Raises TypeError for what is no skill."""
    if not isinstance(loaded, LoadedSkill):
        raise TypeError(f"list_skills gave a {type(loaded).__name__}, not a LoadedSkill")
    name, description = _text_line(loaded.name, NAME_CHARS), _text_line(loaded.description, DESCRIPTION_CHARS)
    triggers = tuple(_text_line(each, TRIGGER_CAP_CHARS) for each in loaded.triggers[:TRIGGERS_CAP])
    triggers = tuple(each for each in triggers if each.strip("* "))
    if not name or not (description or triggers):
        raise TypeError("a skill needs a name, and a description or triggers")
    text = loaded.text[: TEXT_CHARS if with_text is None else SHOWN_CHARS]
    if not triggers and with_text is not None and name not in with_text:
        text = ""
    return Skill(name, description, "", triggers, text)


def _text_line(text: str, most: int) -> str:
    """One line, whatever stands there: a description must not look like further instructions."""
    return " ".join(text[: most * 2].split())[:most]


class LoadSkill(Tool):
    name = "Skill"
    description = (
        "Load a skill that your instructions name: its full text and the names of its files, or with `file` one of "
        "those files. Load a skill before you begin a task that it is about."
    )
    input_schema: dict[str, Any] = {  # noqa: RUF012  as every tool says its schema
        "type": "object",
        "properties": {
            "skill": {"type": "string", "description": "The skill's name."},
            "file": {"type": "string", "description": "One of its files, as it was listed; leave out for its text."},
        },
        "required": ["skill"],
        "additionalProperties": False,
    }
    effect = Effect.READ
    read_only = True
    concurrency_safe = True
    timeout_seconds = 60.0

    def __init__(self, loaders: SkillLoaders | None = None) -> None:
        self._loaders = loaders or SkillLoaders()

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        return await in_own_thread(lambda _: self._analysis(arguments, place))

    async def run(self, call: ToolCall) -> ToolOutput:
        """Raises ToolError for a name that no skill of the agent has, and for a file outside of the skill's folder."""
        try:
            return ToolOutput(await in_own_thread(lambda _: self._loaded(call)))
        except ApplicationError as error:
            raise ToolError(error.message) from error

    def _analysis(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        """The file that would be read. Of what this worker does not find nothing is said: to run reads nothing then."""
        cwd = str(place.cwd)
        try:
            path = wanted(place.skills, place.root, arguments, self._loaders).path
        except (ToolError, ApplicationError):
            return CallAnalysis(cwd=cwd, read_only=True)
        if path is None:
            return CallAnalysis(cwd=cwd, read_only=True)
        try:
            named = further_names(str(path), path, place)
        except ToolError as error:
            return CallAnalysis(cwd=cwd, arguments_error=str(error))
        fact = path_use(path, "read", place.root, named)
        if not fact.inside:
            # The agent names that folder of skills, so it is as open as the workspace.
            danger = danger_of_name(path, "read", path.parent)
            fact = fact.model_copy(update={"inside": True, "danger": danger})
        return CallAnalysis(cwd=cwd, read_only=True, paths=(fact,))

    def _loaded(self, call: ToolCall) -> str:
        want = wanted(call.place.skills, call.place.root, call.arguments, self._loaders)
        analysis = self._analysis(call.arguments, call.place)
        if analysis.paths != call.analysis.paths:
            raise NeedsDecision(analysis, f"the skill {want.skill.name!r} now leads to {str(want.path)!r}")
        return text_of(want)


@dataclass(frozen=True, slots=True)
class WantedSkill:
    """What a call asks for: a skill's text, or one of its files."""

    skill: Skill
    path: Path | None
    """Resolved; None for a text that a loader brings."""
    is_file: bool = False


def wanted(
    named: Sequence[str], root: Path, arguments: dict[str, Any], loaders: SkillLoaders | None = None
) -> WantedSkill:
    """What is asked for, of the skills in these folders, and of these loaders, of an agent whose workspace is at
    `root`. Blocking. Raises ToolError, and NotHere for a folder or a loader that this worker does not have."""
    brought, _ = loaders.skills(named) if loaders else ([], [])
    skill = _named([*find_skills(skill_folders(named, root), root), *brought], arguments["skill"])
    if not skill.path:
        if "file" in arguments:
            raise ToolError(f"the skill {skill.name!r} has no files; leave out `file` for its text")
        return WantedSkill(skill, None)
    path = Path(skill.path)
    if "file" in arguments:
        return WantedSkill(skill, _file(path.parent, arguments["file"]), is_file=True)
    return WantedSkill(skill, path)


def text_of(want: WantedSkill) -> str:
    """As the model reads it. Blocking. Raises ToolError."""
    if want.path is None:
        return want.skill.body
    if want.is_file:
        return skill_text(want.path)
    files = [name for name in files_of(want.path.parent) if name != want.path.name]
    listed = ["", f"Files of this skill, in {want.path.parent}:", *(f"- {name}" for name in files)] if files else []
    return "\n".join((skill_text(want.path), *listed))


def _named(skills: Sequence[Skill], name: str) -> Skill:
    found = next((skill for skill in skills if skill.name == name), None)
    if found is not None:
        return found
    names = sorted(skill.name for skill in skills)
    if not names:
        raise ToolError("this agent has no skills")
    near = nearest(name, names, alike=0)
    raise ToolError(f"there is no skill {name[:100]!r}; the nearest is {near!r}, and all are: {', '.join(names)}")


def _file(folder: Path, name: str) -> Path:
    try:
        path = (folder / name).resolve()
        inside = path.is_relative_to(folder) and not any(
            part.startswith(".") for part in path.relative_to(folder).parts
        )
    except (OSError, ValueError):  # ValueError: a name that no path can have
        path, inside = folder, False
    if not inside:
        raise ToolError(f"{name[:200]!r} is no file of this skill; its files are listed with its text")
    return path
