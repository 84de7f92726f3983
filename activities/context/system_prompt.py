"""Puts together the system prompt of a reply, and the hints behind its request.

Found once per reply. What comes of it is recorded, so that every call, retry and replay is told the same.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.contract import PrepareReply
from longhaul.activities.tools.skills import SkillLoaders, find_project_files, find_skills, noted, skill_folders
from longhaul.agent.plain.text import nearest
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.conversation.prompt import (
    BadPromptTemplate,
    assemble,
    check_template,
    hint_message,
    is_template_name,
    state_hint,
)
from longhaul.agent.values.spec.agent_spec import AgentContext, with_secrets_named
from longhaul.agent.values.spec.knowledge import (
    SKILL_TOOL,
    Skill,
    skill_hint,
    skill_instructions,
    triggered,
    with_knowledge,
)

MOST_REMINDERS = 5
"""Of skills that one request triggers: each may be 20 kB, and crosses the history twice."""
MOST_LEFT_OUT, LEFT_OUT_CHARS = 10, 400
"""Sentences about what is left out, and characters of each."""
TEMPLATE_CAP_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Prompted:
    system_prompt: str
    hints: tuple[Msg, ...]
    left_out: tuple[str, ...] = ()
    """A sentence for each skill, and file of instructions, that is not used or is read otherwise than it is written."""


class Prompting:
    def __init__(self, templates: Path | None = None, loaders: SkillLoaders | None = None) -> None:
        """`templates`: the folder with the templates that agents may name, each a file NAME.md."""
        self._templates, self._loaders = templates, loaders or SkillLoaders()

    def prompt_for(self, ask: PrepareReply, root: Path, window: int) -> Prompted:
        """Blocking. Raises NotHere for a folder or a template that this worker does not have."""
        context = ask.spec.agent_context or AgentContext()
        triggered_by_agent = [known.name for known in context.knowledge]
        left_out = list[str]()
        note = noted(left_out)
        found = find_skills(skill_folders(ask.spec.skills, root, note), root, triggered_by_agent, note)
        brought, failed = self._loaders.skills(ask.spec.skills, triggered_by_agent)
        names = {skill.name for skill in found}
        found += [skill for skill in brought if skill.name not in names]
        skills = with_knowledge(found, context.knowledge)
        by_tool = SKILL_TOOL in ask.spec.all_tools
        parts = {
            "prefix": context.system_prefix,
            "system_prompt": with_secrets_named(ask.spec.system_prompt, ask.spec.secrets),
            "skills": skill_instructions(
                skills, find_project_files(root, note) if context.repo_skills else (), by_tool=by_tool
            ),
            "suffix": context.system_suffix,
        }
        hints = (*(hint_message(why, "skills") for why in failed), *_hints(ask, skills, window))
        prompt = assemble(parts, self._template(context.prompt_template))
        return Prompted(prompt, hints, _first(left_out))

    def _template(self, template: str | None) -> str | None:
        if template is None or not is_template_name(template):
            return template
        path = self._templates / f"{template}.md" if self._templates else None
        if path is None or not path.is_file():
            try:
                names = [path.stem for path in self._templates.glob("*.md")] if self._templates else []
            except OSError:
                names = []
            meant = nearest(template, names)
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise not_here(f"no prompt template is named {template!r} on the workers that were asked{hint}")
        with path.open("rb") as file:
            text = file.read(TEMPLATE_CAP_BYTES).decode("utf-8", "replace")
        try:
            check_template(text)
        except BadPromptTemplate as error:
            message = f"{error} (in the worker's template {template!r})"
            raise ApplicationError(message, type="setup", non_retryable=True) from None
        return text


def _first(sentences: list[str]) -> tuple[str, ...]:
    """They cross the history with each reply."""
    more = len(sentences) - MOST_LEFT_OUT
    first = (one[:LEFT_OUT_CHARS] for one in sentences[:MOST_LEFT_OUT])
    return (*first, *([f"{more} more; the worker's log has all of them"] if more > 0 else []))


def _hints(ask: PrepareReply, skills: list[Skill], window: int) -> list[Msg]:
    news = [skill for skill in triggered(skills, ask.request) if skill.source not in ask.hinted]
    hints = [skill_hint(skill) for skill in news[:MOST_REMINDERS]]
    if ask.spec.inject_runtime_state:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        hints.append(hint_message(state_hint(now, ask.context_tokens, window), "runtime_state"))
    return hints
