"""A prompt is what a model is shown beside the recorded messages: the system prompt, put together, and the summary
layer."""

import re
from collections.abc import Mapping

from longhaul.agent.plain.errors import BadInput
from longhaul.agent.values.conversation.messages import Msg, TextBlock

SUMMARY_NAME = "summary"

PLACEHOLDERS = ("prefix", "system_prompt", "skills", "suffix")
"""What a template of the system prompt may show, in the order that they have without one."""

_MARKS = re.compile(r"\{\{|\}\}|\{(?P<part>\w[\w-]*)\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class BadPromptTemplate(BadInput, ValueError):
    """A template of the system prompt can't be used; the text names the setting and what to do."""


def summary_message(summary: str) -> Msg:
    """The summary layer: the first message of a context that was made shorter. No id and no time, so that the same
    text has the same digest wherever it is made."""
    return Msg(name=SUMMARY_NAME, role="user", content=(TextBlock(text=summary),))


def is_template_name(template: str) -> bool:
    """Whether it names a template on the worker, rather than being one."""
    return _NAME.fullmatch(template) is not None


def check_template(template: str) -> None:
    """Raise BadPromptTemplate for a text with a placeholder that there is not, naming it, or with none at all."""
    used = [found["part"] for found in _MARKS.finditer(template) if found["part"]]
    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    for name in used:
        if name not in PLACEHOLDERS:
            raise BadPromptTemplate(
                f"prompt_template: there is no placeholder {name!r}; there are {known}. "
                "Write {{ and }} for braces that are meant as such"
            )
    if not used:
        raise BadPromptTemplate(
            f"prompt_template: {template[:100]!r} is neither the name of a template nor a text with one of {known}"
        )


def assemble(parts: Mapping[str, str], template: str | None = None) -> str:
    """The system prompt from the parts named in PLACEHOLDERS: by the template's text, or one below the other.

    Parts go in as text and are never interpreted: what stands in braces inside of them stays as it is.
    """
    if template is None:
        return "\n\n".join(text for name in PLACEHOLDERS if (text := parts.get(name, "")).strip())
    return _MARKS.sub(lambda found: parts.get(found["part"], "") if found["part"] else found[0][0], template)
