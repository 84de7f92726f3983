"""The condensers that every worker has, and how a worker gets further ones."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

from longhaul.activities.compression.fitting import shortened
from longhaul.activities.compression.prompts import PROMPT, SYSTEM, answer_form, template_of
from longhaul.activities.compression.rendering import Piece, enclosed, harmless, pieces_of
from longhaul.activities.compression.view import Condensation, Condenser, Question, View
from longhaul.agent.fold.context_state import MASK
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock
from longhaul.agent.values.spec.summary_template import fill, shown
from longhaul.stores.loading import found_at, names_in

ANSWER_LIMIT_BYTES = 400_000
"""The summary crosses the history as text and as fields, beside everything else of its entry."""


MOST_WORDS = 2_000
"""Of a summary, however large the window: nobody reads back a longer one."""
INSTRUCTIONS_CAP_TOKENS = 1_000


class CondenserSetupError(BadSetup):
    """The operator's mistake: a condenser that can't be loaded."""


class Summary:
    """A model writes what the agent needs to go on; the messages go (seed 001)."""

    async def condense(self, view: View) -> Condensation | None:
        if not view.droppable():
            return None
        template = template_of(view.context_config)
        question = Question(
            system=SYSTEM,
            pieces=tuple(_material(view)),
            task=_task(view),
            answer=answer_form(view.context_config),
            check=_complaint,
        )
        answer = await view.ask(question)
        return Condensation(
            keep_from=view.keep_from,
            pinned=view.pinned,
            summary=fill(template, answer.fields),
            fields=answer.fields,
            model=answer.model,
            prompt_digest=digest_of(
                {
                    "system": question.system,
                    "task": question.task,
                    "schema": answer_form(view.context_config).schema,
                    "template": template,
                }
            ),
        )


class DropOldest:
    """The messages go, and nothing is said in their place."""

    async def condense(self, view: View) -> Condensation | None:
        return Condensation(view.keep_from, view.pinned) if view.droppable() else None


class MaskObservations:
    """Old results give way to a fixed text; every message and every call stays. None when that is not enough."""

    async def condense(self, view: View) -> Condensation | None:
        # In a thread: counting takes longer than heartbeats can wait.
        places = await asyncio.to_thread(_enough_to_mask, view)
        return Condensation(keep_from=0, masked=places) if places else None


BUILT_IN: Mapping[str, Condenser] = {
    "summary": Summary(),
    "drop_oldest": DropOldest(),
    "mask_observations": MaskObservations(),
}


def load_condensers(names: str) -> dict[str, Condenser]:
    """Condensers of the operator's own, from `"shop.memory:keep_orders, shop.memory:Forget"`, by those names.

    Each is an object with an async `condense(view)`, or a class that makes one without arguments. Agents may name only
    what is loaded here: the modules of a worker are not the choice of whoever starts a session. Raises
    CondenserSetupError.
    """
    return {name: _load(name) for name in names_in(names)}


def masked(message: Msg) -> Msg:
    """The message with MASK in the place of each result, as the record masks it."""
    content = tuple(
        block.model_copy(update={"output": MASK}) if isinstance(block, ToolResultBlock) else block
        for block in message.content
    )
    # Built anew: a copy would keep the cached length of the old text.
    return Msg.model_validate({**message.model_dump(), "content": content})


def _load(name: str) -> Condenser:
    made = found_at(name, "condenser", CondenserSetupError)
    if not callable(getattr(made, "condense", None)):
        raise CondenserSetupError(f"{name!r} is no condenser: it has no method `async def condense(self, view)`")
    return cast(Condenser, made)


def _material(view: View) -> list[Piece]:
    pieces = [Piece(enclosed("agent-instructions", view.system_prompt), whole=True)] if view.system_prompt else []
    if view.old_summary:
        pieces.append(Piece(enclosed("earlier-summary", view.old_summary), whole=True))
    for index, message in enumerate(view.messages[: view.keep_from]):
        pieces += pieces_of(index, message, " (the agent keeps this message)" if index in view.pinned else "")
    return pieces


def _task(view: View) -> str:
    parts = [view.context_config.compression_prompt or PROMPT]
    if view.goal_tokens > 0:
        words = max(min(view.goal_tokens // 2, MOST_WORDS), 1)
        parts.append(f"All fields together should have at most {words} words.")
    if view.must_mention:
        named = "\n".join(f"- {harmless(line)}" for line in view.must_mention)
        parts.insert(0, f"Still open, and to be named in the summary:\n{named}")
    if asked := shortened(view.instructions, INSTRUCTIONS_CAP_TOKENS, view.count):
        parts.insert(0, f"What the user asks of this summary:\n{enclosed('instructions', asked)}")
    return "\n\n".join(parts)


def _complaint(fields: Mapping[str, Any]) -> str:
    blank = [name for name, value in fields.items() if not shown(value)]
    if len(blank) == len(fields):
        return "all of its fields are empty"
    size = len(json.dumps(fields).encode())
    return f"it has {size} bytes, and {ANSWER_LIMIT_BYTES} are allowed" if size > ANSWER_LIMIT_BYTES else ""


def _enough_to_mask(view: View) -> tuple[int, ...]:
    """All results whose masks are shorter, when the rest then comes down to the goal; else none."""
    size, places = view.tokens((), view.old_summary), list[int]()
    for index in view.droppable():
        message = view.messages[index]
        before = view.tokens([message])
        after = view.tokens([masked(message)]) if message.get_tool_results() else before
        if after < before:
            places.append(index)
        size += min(before, after)
    return tuple(places) if size <= view.goal_tokens else ()
