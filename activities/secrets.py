"""The secrets of this worker: who gets which, and what is cut out of everything that leaves an activity.

Agents name secrets; values are known to workers alone. A tool gets those that its agent allows it, for one call: a
command as environment variables, a function through `secret`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from activities.masking import Masker, mark
from activities.tools.shell_danger import dangerous_variable
from activities.tools.tool import ToolError
from agent.messages import ContentBlock, DataBlock, HintBlock, Msg, TextBlock, ThinkingBlock, ToolResultBlock
from agent.permission.facts import CallFacts

SHORTEST_CHARACTERS = 6
LONGEST_CHARACTERS = 20_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_given: ContextVar[Mapping[str, str]] = ContextVar("secrets of the running call")


class SecretsSetupError(Exception):
    """The operator's mistake: a secret that can't be kept, named without its value."""


def secret(name: str) -> str:
    """For functions under `@tool`: the value of a secret that the agent allows this tool. ToolError otherwise."""
    given = _given.get({})
    if name not in given:
        raise ToolError(f"this call was given no secret {name!r}; the agent's [secrets] must allow it")
    return given[name]


@contextmanager
def given(secrets: Mapping[str, str]) -> Iterator[None]:
    """Within the block, `secret` gives these."""
    token = _given.set(secrets)
    try:
        yield
    finally:
        _given.reset(token)


class Secrets:
    """Values by name, fixed at the start of the worker. Raises SecretsSetupError for one that could not be masked."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})
        for name, value in self._values.items():
            _check(name, value, self._values)
        self.masker = Masker(self._values)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that this worker does not have."""
        return [name for name in names if name not in self._values]

    def named(self, names: Iterable[str]) -> dict[str, str]:
        """For one call of one tool."""
        return {name: self._values[name] for name in names}

    def out_of_result(self, result: ToolResultBlock) -> ToolResultBlock:
        """What a tool gave back, without secrets. Never raises: the call has run."""
        if not self.masker:
            return result
        shown = result.output
        output = self.masker.masked(shown) if isinstance(shown, str) else tuple(map(self._out_of_part, shown))
        try:
            metadata = self._out_of(result.metadata)
        except RecursionError:
            metadata = {}
        return result.model_copy(update={"output": output, "metadata": metadata})

    def out_of_facts(self, facts: CallFacts) -> CallFacts:
        """Findings without secrets in what people and models read. Paths and commands stay: they are compared."""
        if not self.masker:
            return facts
        texts = ("arguments_error", "not_understood", "safety", "notice", "risk_reason")
        masked = {name: self.masker.masked(getattr(facts, name)) for name in texts}
        return facts.model_copy(update=masked)

    def out_of_content(self, content: tuple[ContentBlock, ...]) -> tuple[ContentBlock, ...]:
        """What a model said, or is told. Arguments of calls stay as they are, for they are what runs."""
        return tuple(self._out_of_block(block) for block in content) if self.masker else content

    def out_of_messages(self, messages: tuple[Msg, ...]) -> tuple[Msg, ...]:
        return tuple(each.model_copy(update={"content": self.out_of_content(each.content)}) for each in messages)

    def _out_of_block(self, block: ContentBlock) -> ContentBlock:
        match block:
            case TextBlock():
                return self._out_of_part(block)
            case HintBlock() if isinstance(block.hint, str):
                return block.model_copy(update={"hint": self.masker.masked(block.hint)})
            case ThinkingBlock() if self.masker.found(block.thinking):
                # Without the provider's signature, which would not fit any more.
                return TextBlock(text=self.masker.masked(block.thinking))
            case _:
                return block

    def _out_of_part(self, part: TextBlock | DataBlock) -> TextBlock | DataBlock:
        if isinstance(part, TextBlock):
            return TextBlock(text=self.masker.masked(part.text))
        if name := self.masker.found(part.model_dump_json()):
            return TextBlock(text=f"[an attachment is left out: it holds {mark(name)}]")
        return part

    def _out_of(self, value: Any) -> Any:
        """Keys included; what is not JSON comes back as it is, or as the mark alone."""
        match value:
            case None | bool() | int() | float():
                return value
            case str():
                return self.masker.masked(value)
            case dict():
                return {self._out_of(key): self._out_of(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self._out_of(inner) for inner in value]
            case _:
                name = self.masker.found(repr(value))
                return mark(name) if name else value


def _check(name: str, value: str, all_names: Iterable[str]) -> None:
    if not _NAME.fullmatch(name):
        raise SecretsSetupError(f"the secret {name!r} can't be a variable: use letters, digits and _")
    if why := dangerous_variable(name.upper()):
        raise SecretsSetupError(f"the secret {name!r} can't be given to commands: {why}; take another name")
    visible = value.strip()
    if len(visible) < SHORTEST_CHARACTERS:
        raise SecretsSetupError(
            f"the secret {name!r} has fewer than {SHORTEST_CHARACTERS} characters: cut out of every output, it would "
            "take harmless text along; take a longer one"
        )
    if len(value) > LONGEST_CHARACTERS or "\0" in value or not _is_unicode(value):
        raise SecretsSetupError(
            f"the secret {name!r} can't be given to a command: it must be text of at most {LONGEST_CHARACTERS} "
            "characters, without NUL"
        )
    if any(visible.lower() in mark(other).lower() for other in all_names):
        raise SecretsSetupError(f"the secret {name!r} is a word that stands in a name; take one that can't be guessed")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)
