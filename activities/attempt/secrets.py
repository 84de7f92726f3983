"""The secrets of this worker: who gets which, and what is cut out of everything that leaves an activity.

Agents name secrets; values are known to workers alone. A tool gets those that its agent allows it, for one call: a
command as environment variables, a function through `secret`.

Arguments of calls without the values of secrets: what is recorded and shown has a mark where each stood.

`[secret NAME]` stands for the value: within the strings of JSON, names included, however they were escaped.

Looks for secrets in attachments. A text is shown with marks; of another file nothing can be cut out, so words stand
in its place.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from longhaul.activities.masker import Masker, mark, without_secret_extras, without_secrets
from longhaul.activities.shell.environment_variables import dangerous_variable
from longhaul.activities.tool import ToolError
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.values.conversation.messages import (
    Base64Source,
    ContentBlock,
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    URLSource,
    with_content,
)

_PIXELS = frozenset({"image", "audio", "video"})
"""Nobody writes a secret so that it could be found in their bytes, and looking takes a second where they are many."""


def out_of_attachment(block: DataBlock, masker: Masker) -> DataBlock | TextBlock:
    """The same one when it holds no secret."""
    source = block.source
    if isinstance(source, URLSource):
        return left_out(name) if (name := masker.found(source.url)) else _renamed(block, masker)
    if source.media_type.partition("/")[0].strip().lower() in _PIXELS:
        return _renamed(block, masker)
    text = _text_in(source)
    if text is None:
        return left_out(name) if (name := masker.found(source.data)) else _renamed(block, masker)
    shown = masker.masked(text)
    if shown != text:
        data = base64.b64encode(shown.encode()).decode()
        block = block.model_copy(update={"source": source.model_copy(update={"data": data})})
    return _renamed(block, masker)


def left_out(name: str) -> TextBlock:
    """Words for what holds the secret of this name."""
    return TextBlock(text=f"[an attachment is left out: it holds {mark(name)}]")


def _renamed(block: DataBlock, masker: Masker) -> DataBlock:
    shown = masker.masked(block.name or "")
    return block if shown == (block.name or "") else block.model_copy(update={"name": shown})


def _text_in(source: Base64Source) -> str | None:
    """None for a PDF, which would be spoilt by other words, and for what is no UTF-8."""
    if source.media_type.partition(";")[0].strip().lower() == "application/pdf":
        return None
    try:
        return base64.b64decode(source.data, validate=True).decode()
    except ValueError:
        return None


SPELT_OTHERWISE = "a secret in another spelling: "
"""What arguments begin with that are no JSON because of it: they are refused."""


def marked(arguments: str, masker: Masker) -> str:
    """The same with marks. No JSON any more where a value can't be cut out of a string: a number, broken JSON."""
    if not masker.found(arguments):
        return arguments
    try:
        text = _written(_with(_parsed(arguments), masker.masked))
    except (ValueError, RecursionError):
        text = arguments
    return masker.masked(text)


def kept(arguments: str, masker: Masker, values: Mapping[str, str]) -> str:
    """The same, where nothing else is recorded: `filled` gives back what was meant, or it is no JSON and says why.

    `values`: all that the masker knows.
    """
    text = marked(arguments, masker)
    if text == arguments or _means_the_same(filled(text, values), filled(arguments, values)):
        return text
    return f"{SPELT_OTHERWISE}{text}"


def filled(arguments: str, values: Mapping[str, str]) -> str:
    """JSON with these values in the place of their marks; what is no JSON comes back as it is."""
    marks = {mark(name): value for name, value in values.items()}
    if not any(each in arguments for each in marks):
        return arguments
    pattern = re.compile("|".join(map(re.escape, marks)))
    try:
        return _written(_with(_parsed(arguments), lambda text: pattern.sub(lambda found: marks[found[0]], text)))
    except (ValueError, RecursionError):
        return arguments


def _with(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return _once([(change(name), _with(inner, change)) for name, inner in value.items()])
        case list():
            return [_with(inner, change) for inner in value]
        case _:
            return value


def _parsed(arguments: str) -> Any:
    return json.loads(arguments, object_pairs_hook=_once, parse_constant=_refused)


def _written(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can spell
        return json.dumps(value)
    return text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(plain := dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice")
    return plain


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _means_the_same(one: str, other: str) -> bool:
    try:
        return bool(_parsed(one) == _parsed(other))
    except (ValueError, RecursionError):
        return False


SHORTEST_CHARACTERS = 6
LONGEST_CHARACTERS = 20_000
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CUT, CUT_END = "… (", " more characters)"
"""Around the count of what is missing of a line."""
_given: ContextVar[Mapping[str, str]] = ContextVar("secrets of the running call")


class SecretsSetupError(BadSetup):
    """A mistake in the worker's settings: a secret that can't be kept. The message names the secret, not its value."""


def secret(name: str) -> str:
    """The value of a secret that the agent allows this tool, for functions under `@tool`. Raises ToolError if the tool
    does not get it."""
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


class WorkerSecrets:
    """Values by name, fixed at the start of the worker. Raises SecretsSetupError for one that could not be masked."""

    def __init__(self, values: Mapping[str, str] | None = None, own: Mapping[str, str] | None = None) -> None:
        """`own`: what nobody is given, and is masked like the others."""
        self._values = dict(values or {})
        for name, value in self._values.items():
            _check(name, value, self._values)
        given = self._values.values()
        hidden = {name: text for name, text in (own or {}).items() if text not in given and not _NO_TEXT.search(text)}
        self._known = {**hidden, **self._values}
        self.masker = Masker(self._known)

    @property
    def names(self) -> tuple[str, ...]:
        """Those that agents may name."""
        return tuple(self._values)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that this worker does not have."""
        return [name for name in names if name not in self._values]

    def named(self, names: Iterable[str]) -> dict[str, str]:
        """For one call of one tool."""
        return {name: self._values[name] for name in names}

    def marked(self, arguments: str) -> str:
        """Arguments of a call as they are recorded for those who read them; the same when they hold no secret."""
        return marked(arguments, self.masker)

    def kept(self, arguments: str) -> str:
        """The same, where what runs is made of them with `filled`."""
        return kept(arguments, self.masker, self._known)

    def filled(self, arguments: str, names: Iterable[str]) -> str:
        """The arguments that a tool gets which is given these secrets. Nobody is given the worker's own."""
        return filled(arguments, {name: self._values[name] for name in names if name in self._values})

    def out_of_result(self, result: ToolResultBlock) -> ToolResultBlock:
        """What a tool gave back, without secrets. Never raises: the call has run."""
        if not self.masker:
            return result
        shown = result.output
        output = self.masker.masked(shown) if isinstance(shown, str) else tuple(map(self._out_of_part, shown))
        try:
            metadata = self.out_of(result.metadata)
        except RecursionError:
            metadata = {}
        return result.model_copy(update={"output": output, "metadata": metadata})

    def out_of_analysis(self, analysis: CallAnalysis) -> CallAnalysis:
        """Findings without secrets in what people and models read. Paths and commands stay: they are compared."""
        if not self.masker:
            return analysis
        texts = ("arguments_error", "not_understood", "safety", "risk_reason")
        masked = {name: self.masker.masked(getattr(analysis, name)) for name in texts}
        return analysis.model_copy(update={**masked, "notice": self._out_of_cut(analysis.notice)})

    def out_of_findings(self, analysis: CallAnalysis, arguments: str) -> CallAnalysis:
        """Findings about a call with these arguments. Where they hold a secret, so may paths and commands: it is cut
        out there too, and what rules can't see any more is said to be not understood. Of what such a call would write
        no digest is kept, for a short secret could be guessed by it."""
        analysis = self.out_of_analysis(analysis)
        name = self.masker.found(arguments)
        if not name:
            return analysis
        shown = {
            "commands": tuple(
                command.model_copy(update={"words": self._out_of_words(command.words)}) for command in analysis.commands
            ),
            "paths": tuple(
                path.model_copy(
                    update={
                        "path": self.masker.masked(path.path),
                        "named": tuple(map(self.masker.masked, path.named)),
                        "danger": self.masker.masked(path.danger),
                    }
                )
                for path in analysis.paths
            ),
            "mentioned": tuple(tuple(map(self.masker.masked, names)) for names in analysis.mentioned),
        }
        hidden = any(getattr(analysis, part) != shown[part] for part in shown)
        why = analysis.not_understood or (f"the value of the secret {name}" if hidden else "")
        return analysis.model_copy(update={**shown, "not_understood": why, "after": ""})

    def _out_of_words(self, words: tuple[str, ...]) -> tuple[str, ...]:
        masked = tuple(map(self.masker.masked, words))
        if name := self.masker.found(" ".join(masked)):
            return (mark(name),)  # it goes on from one word to the next
        return masked

    def _out_of_cut(self, text: str) -> str:
        """Of a text with lines that were cut, without what may be the beginning of a secret there."""
        return self.masker.masked("\n".join(map(self._out_of_cut_line, text.split("\n"))))

    def _out_of_cut_line(self, line: str) -> str:
        body, cut, count = line.rpartition(CUT)
        if not cut or not count.endswith(CUT_END):
            return line
        return f"{body[: self.masker.opening(body, max(0, len(body) - self.masker.reach))]}{cut}{count}"

    def out_of_content(self, content: tuple[ContentBlock, ...]) -> tuple[ContentBlock, ...]:
        """What a model said, or is told. Arguments of calls stay as they are, for they are what runs."""
        return tuple(self._out_of_block(block) for block in content) if self.masker else content

    def out_of_messages(self, messages: tuple[Msg, ...]) -> tuple[Msg, ...]:
        return tuple(each.model_copy(update={"content": self.out_of_content(each.content)}) for each in messages)

    def out_of_message(self, message: Msg) -> Msg:
        """A message that no activity made; the same one when it holds no secret. Of attachments, texts are read."""
        content = tuple(self._out_of_said(block) for block in message.content) if self.masker else message.content
        if content == message.content:
            return message
        return with_content(message, content)

    def out_of_words(self, words: Mapping[str, str]) -> dict[str, str]:
        """Those that hold a secret, without it."""
        return {place: shown for place, text in words.items() if (shown := self.masker.masked(text)) != text}

    def _out_of_said(self, block: ContentBlock) -> ContentBlock:
        match block:
            case ToolCallBlock():
                return without_secret_extras(block, self.masker).model_copy(update={"input": self.marked(block.input)})
            case ToolResultBlock():
                return self.out_of_result(block)
            case _:
                return self._out_of_block(block)

    def _out_of_block(self, block: ContentBlock) -> ContentBlock:
        match block:
            case TextBlock():
                return self._out_of_part(without_secret_extras(block, self.masker))
            case ToolCallBlock():
                return without_secret_extras(block, self.masker)
            case HintBlock(hint=str(hint)):
                return block.model_copy(update={"hint": self.masker.masked(hint)})
            case HintBlock(hint=tuple(parts)):
                return block.model_copy(update={"hint": tuple(map(self._out_of_part, parts))})
            case DataBlock():
                return out_of_attachment(block, self.masker)
            case ThinkingBlock():
                return without_secrets(block, self.masker)
            case _:
                return block

    def _out_of_part(self, part: TextBlock | DataBlock) -> TextBlock | DataBlock:
        if isinstance(part, TextBlock):
            return part.model_copy(update={"text": self.masker.masked(part.text)})
        shown = out_of_attachment(part, self.masker)
        return left_out(name) if (name := self.masker.found(shown.model_dump_json())) else shown

    def out_of(self, value: Any) -> Any:
        """Keys included; what is not JSON comes back as it is, or as the mark alone."""
        match value:
            case None | bool() | int() | float():
                return value
            case str():
                return self._out_of_cut(value)
            case dict():
                return {self.out_of(key): self.out_of(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self.out_of(inner) for inner in value]
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
    if len(value) > LONGEST_CHARACTERS or _NO_TEXT.search(value):
        raise SecretsSetupError(
            f"the secret {name!r} can't be given to a command: it must be text of at most {LONGEST_CHARACTERS} "
            "characters, without NUL"
        )
    if any(visible.lower() in mark(other).lower() for other in all_names):
        raise SecretsSetupError(f"the secret {name!r} is a word that stands in a name; take one that can't be guessed")
