"""A prompt is what a model is shown beside the recorded messages: the system prompt, put together, and the summary
layer."""

import re
from collections.abc import Mapping, Sequence

from longhaul.agent.plain.errors import BadInput
from longhaul.agent.values.conversation.messages import HintBlock, Msg, TextBlock

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


def hint_message(hint: str, source: str) -> Msg:
    """Words for the model that no person said, for the end of the context: in the system prompt they would make the
    provider read everything anew."""
    return Msg(name="longhaul", role="user", content=(HintBlock(hint=hint, source=source),))


def cut_short(begun_calls: Sequence[str]) -> str:
    """What the model is told behind an answer of its own that was interrupted."""
    told = "Your answer was interrupted here, before it was finished: nothing more of it was said."
    if not begun_calls:
        return told
    names = ", ".join(repr(name) for name in begun_calls)
    return f"{told} You were writing calls ({names}): they were dropped, and none of them ran."


LIMIT_SOURCE = "max_iters"
LIMIT_REACHED = (
    "You have reached the limit of iterations for this reply. Do not call tools any more: say what you "
    "have found and done so far, and what is left to do."
)
"""Recorded like all that a model is sent: newer ones are bound to what stands before their thinking."""


def state_hint(now: str, used_tokens: int, window_tokens: int) -> str:
    """What the model can't know otherwise: the time, and what is left of its window when more than half is used.

    `now`: ISO 8601 in UTC. A window of 0 is unknown.
    """
    lines = [f"The time is {now} (UTC)."]
    if window_tokens and used_tokens * 2 > window_tokens:
        left = max(window_tokens - used_tokens, 0)
        lines.append(f"About {left} of the {window_tokens} tokens of your context are left.")
    return "\n".join(lines)


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
