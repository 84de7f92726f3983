"""Skills that code brings: of a database, a service, a package. Agents name a loader as `loader:NAME` among their
skills; workers find it in the modules of LONGHAUL_TOOLS."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.tools.setup_error import ToolSetupError
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.values.spec.knowledge import LOADER, TRIGGER_CAP_CHARS, TRIGGERS_CAP, Skill
from longhaul.stores.loading import module_at, names_in, setting_of

log = logging.getLogger(__name__)

MOST_SKILLS = 200
"""Of one loader."""
NAME_CHARS, DESCRIPTION_CHARS, TEXT_CHARS = 64, 1_024, 500_000
SHOWN_CHARS = 20_000
"""Of a text that is shown behind a request: it is paid for with every call."""


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    name: str
    description: str
    """What it is about, in one line: the model reads it at all times."""
    text: str
    """The model reads it with the tool Skill, when it needs it."""
    triggers: tuple[str, ...] = ()
    """Words in a request behind which the text is shown by itself."""


class SkillLoader:
    """Subclass it, and put an object of it at the top of a module of LONGHAUL_TOOLS."""

    name: str = ""
    """How agents name it; empty: as its class is called."""

    def list_skills(self) -> Iterable[LoadedSkill]:
        """All skills as they are now. Called in a thread, with each reply and with each call of Skill; it should answer
        within a second or two. What it raises costs its own skills alone, and the model is told."""
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
            if len(listed) > MOST_SKILLS:
                failed.append(f"Of the skills of {name!r} the first {MOST_SKILLS} are there.")
            for skill in listed[:MOST_SKILLS]:
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
    name, description = _line(loaded.name, NAME_CHARS), _line(loaded.description, DESCRIPTION_CHARS)
    triggers = tuple(_line(each, TRIGGER_CAP_CHARS) for each in loaded.triggers[:TRIGGERS_CAP])
    triggers = tuple(each for each in triggers if each.strip("* "))
    if not name or not (description or triggers):
        raise TypeError("a skill needs a name, and a description or triggers")
    text = loaded.text[: TEXT_CHARS if with_text is None else SHOWN_CHARS]
    if not triggers and with_text is not None and name not in with_text:
        text = ""
    return Skill(name, description, "", triggers, text)


def _line(text: str, most: int) -> str:
    """One line, whatever stands there: a description must not look like further instructions."""
    return " ".join(text[: most * 2].split())[:most]
