"""A prompt is what a model is shown beside the recorded messages: the system prompt, put together, and the summary
layer.

All that the session itself tells its model, beside what people and tools say: limits, the time, how to go on.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from longhaul.agent.plain.errors import BadInput
from longhaul.agent.values.conversation.messages import HintBlock, Msg, TextBlock
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE

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


NEW_PROMPT = (
    "Your system prompt has changed since this conversation began. Compared with the text at the beginning, lines that "
    "begin with - hold no longer, and lines that begin with + hold now. Lines of <project-instructions> are still from "
    "files of the workspace, and neither from your operator nor from your user:"
)


def new_prompt(before: str, now: str) -> str:
    """What the model reads of it at the end of its context: the lines from the first that changed to the last. The rest
    is at the beginning."""
    old, new = before.splitlines(), now.splitlines()
    same = [was == comes for was, comes in zip(old, new, strict=False)]
    first = same.index(False) if False in same else len(same)
    old, new = old[first:], new[first:]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return "\n".join([NEW_PROMPT, "", *(f"- {line}" for line in old), *(f"+ {line}" for line in new)])


LIMIT_SOURCE = "max_iters"
LIMIT_REACHED = (
    "You have reached the limit of iterations for this reply. Do not call tools any more: say what you "
    "have found and done so far, and what is left to do."
)
"""Recorded like all that a model is sent: newer ones are bound to what stands before their thinking."""

GoOn = Literal["", "length", "wordless", "paused", "window", "unstructured"]
"""How a model is told to go on; wordless: it has used all of its tokens to think; unstructured: it has answered in
words where a form was asked for."""

GO_ON: dict[GoOn, str] = {
    "length": "Your answer broke off at the limit of output tokens. Go on exactly where it ends: repeat nothing, "
    "and do not sum up. If much is left, take smaller steps.",
    "wordless": "You used all of your output tokens before you had said a word. Think less, and answer or call a tool.",
    "paused": "Your answer was paused before it was finished. Go on exactly where it ends.",
    "window": "Your answer broke off because your context window was full; what was said long ago may be summed up by "
    "now. Go on exactly where it ends, and be brief.",
    "unstructured": f"Words alone are no answer here. If the work is done, call `{GENERATE_RESPONSE}` with your "
    "answer; if it is not, go on with it.",
}

BROKE_OFF = "broken_off"
"""The source of those hints."""
_EXACTLY = frozenset({GO_ON["length"], GO_ON["paused"], GO_ON["window"]})


def goes_on(messages: Sequence[Msg]) -> bool:
    """Whether a model is asked with these to go on within the text that it has said last."""
    told = False
    for message in reversed(messages):
        last = message.content[-1] if message.content else None
        if message.role == "assistant":
            return told and isinstance(last, TextBlock)
        if not isinstance(last, HintBlock):
            return False
        told = told or (last.source == BROKE_OFF and last.hint in _EXACTLY)
    return False


NOT_WHOLE = (
    "your message broke off while you were writing it, so its arguments may not be whole. Make it again; if it was "
    "long, make it shorter, or several calls of it"
)
"""Why the last call of a message that broke off does not run."""

LIMIT_OF_FORM = (
    f"You have reached the limit of iterations for this reply. Call `{GENERATE_RESPONSE}` now, with what you know, and "
    "nothing else."
)


LONGHAUL = "longhaul"
"""Sender of what no person has said."""


def hint_message(hint: str, source: str, tools: Sequence[str] = ()) -> Msg:
    """Words for the model that no person said, for the end of the context: in the system prompt they would make the
    provider read everything again."""
    return Msg(name=LONGHAUL, role="user", content=(HintBlock(hint=hint, source=source, tools=tuple(tools)),))


def added_tools(names: Sequence[str]) -> Msg:
    """Tells the model at the end of its context that it has more tools. Each provider is shown them there in its own
    form (`activities.models.requests.late_tools`)."""
    return hint_message(f"You have more tools from here on: {', '.join(names)}.", "tools", names)


def cut_short(started_calls: Sequence[str]) -> str:
    """What the model is told behind an answer of its own that was interrupted."""
    told = "Your answer was interrupted here, before it was finished: nothing more of it was said."
    if not started_calls:
        return told
    names = ", ".join(repr(name) for name in started_calls)
    return f"{told} You were writing calls ({names}): they were dropped, and none of them ran."


def state_hint(now: str, used_tokens: int, window_tokens: int) -> str:
    """What the model can't know otherwise: the time, and what is left of its window when more than half is used.

    `now`: ISO 8601 in UTC. A window of 0 is unknown.
    """
    lines = [f"The time is {now} (UTC)."]
    if window_tokens and used_tokens * 2 > window_tokens:
        left = max(window_tokens - used_tokens, 0)
        lines.append(f"About {left} of the {window_tokens} tokens of your context are left.")
    return "\n".join(lines)
