"""Skill: a skill's full text and the names of its files, or one of those files; by name, when the model needs it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt import own_session
from longhaul.activities.process.threads import in_own_thread
from longhaul.activities.tool import Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.skills.skill_files import files_of, find_skills, skill_folders, skill_text
from longhaul.activities.tools.skills.skill_loaders import SkillLoaders
from longhaul.agent.plain.nearest import nearest
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.skills import Skill


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

    async def run(self, call: ToolCall) -> ToolOutput:
        """Raises ToolError for a name that no skill of the agent has, and for a file outside of the skill's folder."""
        told = await own_session.pull_spec()
        try:
            root, arguments = call.place.root, call.arguments
            text = await in_own_thread(lambda _: loaded(told.skills, root, arguments, self._loaders))
            return ToolOutput(text)
        except ApplicationError as error:
            raise ToolError(error.message) from error


def loaded(named: Sequence[str], root: Path, arguments: dict[str, Any], loaders: SkillLoaders | None = None) -> str:
    """What is asked for, of the skills in these folders, and of these loaders, of an agent whose workspace is at
    `root`. Blocking. Raises ToolError, and NotHere for a folder or a loader that this worker does not have."""
    brought, _ = loaders.skills(named) if loaders else ([], [])
    skill = _named([*find_skills(skill_folders(named, root)), *brought], arguments["skill"])
    if not skill.path:
        if "file" in arguments:
            raise ToolError(f"the skill {skill.name!r} has no files; leave out `file` for its text")
        return skill.body
    path = Path(skill.path)
    if "file" in arguments:
        return _file(path.parent, arguments["file"])
    files = [name for name in files_of(path.parent) if name != path.name]
    listed = ["", f"Files of this skill, in {path.parent}:", *(f"- {name}" for name in files)] if files else []
    return "\n".join((skill_text(path), *listed))


def _named(skills: Sequence[Skill], name: str) -> Skill:
    found = next((skill for skill in skills if skill.name == name), None)
    if found is not None:
        return found
    names = sorted(skill.name for skill in skills)
    if not names:
        raise ToolError("this agent has no skills")
    near = nearest(name, names, alike=0)
    raise ToolError(f"there is no skill {name[:100]!r}; the nearest is {near!r}, and all are: {', '.join(names)}")


def _file(folder: Path, name: str) -> str:
    try:
        path = (folder / name).resolve()
        inside = path.is_relative_to(folder) and not any(
            part.startswith(".") for part in path.relative_to(folder).parts
        )
    except (OSError, ValueError):  # ValueError: a name that no path can have
        path, inside = folder, False
    if not inside:
        raise ToolError(f"{name[:200]!r} is no file of this skill; its files are listed with its text")
    return skill_text(path)
