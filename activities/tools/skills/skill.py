"""Skill: a skill's full text and the names of its files, or one of those files; by name, when the model needs it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.exceptions import ApplicationError

from longhaul.activities.process.threads import in_own_thread
from longhaul.activities.shell.path_names import further_names
from longhaul.activities.shell.paths import danger_of_name, path_fact
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.skills.skill_files import files_of, find_skills, skill_folders, skill_text
from longhaul.activities.tools.skills.skill_loaders import SkillLoaders
from longhaul.agent.permission.call_facts import CallFacts
from longhaul.agent.plain.text import nearest
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.knowledge import Skill


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

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallFacts:
        return await in_own_thread(lambda _: self._facts(arguments, place))

    async def run(self, call: ToolCall) -> ToolOutput:
        """Raises ToolError for a name that no skill of the agent has, and for a file outside of the skill's folder."""
        try:
            return ToolOutput(await in_own_thread(lambda _: self._loaded(call)))
        except ApplicationError as error:
            raise ToolError(error.message) from error

    def _facts(self, arguments: dict[str, Any], place: Place) -> CallFacts:
        """The file that would be read. Of what this worker does not find nothing is said: to run reads nothing then."""
        cwd = str(place.cwd)
        try:
            path = wanted(place.skills, place.root, arguments, self._loaders).path
        except (ToolError, ApplicationError):
            return CallFacts(cwd=cwd, read_only=True)
        if path is None:
            return CallFacts(cwd=cwd, read_only=True)
        try:
            named = further_names(str(path), path, place)
        except ToolError as error:
            return CallFacts(cwd=cwd, arguments_error=str(error))
        fact = path_fact(path, "read", place.root, named)
        if not fact.inside:
            # The agent names that folder of skills, so it is as open as the workspace.
            danger = danger_of_name(path, "read", path.parent)
            fact = fact.model_copy(update={"inside": True, "danger": danger})
        return CallFacts(cwd=cwd, read_only=True, paths=(fact,))

    def _loaded(self, call: ToolCall) -> str:
        want = wanted(call.place.skills, call.place.root, call.arguments, self._loaders)
        facts = self._facts(call.arguments, call.place)
        if facts.paths != call.facts.paths:
            raise NeedsDecision(facts, f"the skill {want.skill.name!r} now leads to {str(want.path)!r}")
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
    skill = _named([*find_skills(skill_folders(named, root)), *brought], arguments["skill"])
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
