"""Plain functions as tools: `@tool` takes the schema from the signature and the description from the docstring.

What a function answers becomes output for the model: text, blocks, or JSON; a generator's is gathered piece by
piece.
"""

import asyncio
import contextlib
import functools
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from itertools import groupby
from typing import Any, Literal, TypedDict, Unpack, cast, overload

import docstring_parser
from docstring_parser import Docstring
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import ArgsKwargs, to_jsonable_python

from longhaul.activities.process.program_output import clipped, progress, words_of
from longhaul.activities.process.threads import in_own_thread
from longhaul.activities.tool import Found, NeedsDecision, Tool, ToolCall, ToolError, ToolOutput
from longhaul.agent.values.conversation.messages import DataBlock, TextBlock
from longhaul.agent.values.conversation.tools import Effect, Finding
from longhaul.agent.values.deadlines import Deadline

OUTPUT_CAP = 20_000_000
"""Characters. What the context has no room for is kept whole outside, so this guards the worker's memory alone."""


def tool_output(result: object) -> ToolOutput:
    """Raises ToolError for what JSON can't carry."""
    match result:
        case ToolOutput():
            return result
        case str():
            return ToolOutput(clipped(result, OUTPUT_CAP))
        case TextBlock() | DataBlock():
            return ToolOutput((result,))
        case tuple() | list() if result and all(isinstance(part, TextBlock | DataBlock) for part in result):
            return ToolOutput(tuple(result))
        case _:
            return ToolOutput(clipped(_as_json(result), OUTPUT_CAP))


class Pieces:
    """What a generator yields, in its order: texts as they stand, anything else that is no block on a line of its own.
    Each is shown as progress when it comes. The newest ToolOutput says whether the tool has failed, and where it is."""

    def __init__(self) -> None:
        self._blocks: list[TextBlock | DataBlock] = []
        self._newest = ToolOutput("")
        self._room = OUTPUT_CAP
        self._left_out = 0

    def take(self, piece: object) -> None:
        """Raises ToolError for what JSON can't carry."""
        made = tool_output(piece)
        self._newest = made if isinstance(piece, ToolOutput) else self._newest
        text = isinstance(piece, str | ToolOutput)
        blocks = made.output if isinstance(made.output, tuple) else (TextBlock(text=made.output + "\n" * (not text)),)
        for block in blocks:
            if isinstance(block, TextBlock):
                progress(block.text)
            size = len(block.text) if isinstance(block, TextBlock) else len(block.model_dump_json())
            if size > self._room:
                self._left_out += 1
            else:
                self._room -= size
                self._blocks.append(block)

    def output(self) -> ToolOutput:
        # Neighbouring texts become one block: a tool may yield each letter.
        made: list[TextBlock | DataBlock] = []
        for is_text, run in groupby(self._blocks, lambda block: isinstance(block, TextBlock)):
            if is_text:
                made.append(TextBlock(text="".join(block.text for block in run if isinstance(block, TextBlock))))
            else:
                made += run
        blocks = tuple(made)
        if self._left_out:
            blocks += (TextBlock(text=f"\n[… {self._left_out} more pieces are left out …]"),)
        texts = [block.text for block in blocks if isinstance(block, TextBlock)]
        output = "".join(texts) if len(texts) == len(blocks) else blocks
        return ToolOutput(output, self._newest.failed, self._newest.metadata, self._newest.cwd)

    def before(self, sentence: str) -> str:
        """An error's sentence, with the text that had come before it."""
        so_far = "".join(block.text for block in self._blocks if isinstance(block, TextBlock))
        return f"{so_far.rstrip()}\n\nThen it failed: {sentence}" if so_far.strip() else sentence


def _as_json(result: object) -> str:
    try:
        return json.dumps(to_jsonable_python(result), ensure_ascii=False)
    except Exception as error:  # noqa: BLE001  the tool has run: whatever its answer does now, it must not look undone
        raise ToolError(f"the tool did its work, but its result can't be written as JSON: {words_of(error)}") from None


Function = Callable[..., Any]
EffectName = Literal["read", "idempotent", "once"]
Probe = Callable[[ToolCall], Found | Finding | Awaitable[Found | Finding]]


class ToolTraits(TypedDict, total=False):
    """Options of `@tool`. An option that is not given is as in `Tool`."""

    name: str | None
    description: str | None
    effect: Effect | EffectName
    concurrency_safe: bool
    read_only: bool
    is_external_tool: bool
    timeout_seconds: float
    probe: Probe | None
    deadline: Deadline | None
    result_schema: dict[str, Any] | None
    untrusted: bool
    quick: bool


class FunctionTool(Tool):
    """A function or generator, sync or async, that the model may call. You can still call it from Python."""

    def __init__(self, function: Function, **traits: Unpack[ToolTraits]) -> None:
        if unknown := traits.keys() - ToolTraits.__optional_keys__:
            known = ", ".join(sorted(ToolTraits.__optional_keys__))
            raise TypeError(f"@tool has no parameter {min(unknown)!r}; it takes {known}")
        _refuse_unnamed(function)
        self._function = function
        self.__module__ = function.__module__
        self._adapter = _adapter(function)
        self.name = traits.pop("name", None) or function.__name__
        try:
            said = docstring_parser.parse(inspect.getdoc(function) or "")
        except docstring_parser.ParseError:
            said = Docstring()
        self.description = traits.pop("description", None) or _what_it_does(function, said)
        # The docstring describes parameters, in Google's, NumPy's or Sphinx' style, of which the signature
        # says nothing.
        schema = self._adapter.json_schema()
        about = {one.arg_name.lstrip("*"): one.description for one in said.params if one.description}
        described = {
            name: {"description": about[name], **field} if name in about else field
            for name, field in schema.get("properties", {}).items()
        }
        self.input_schema = {**schema, "properties": described} if "properties" in schema else schema
        self.effect = Effect(traits.pop("effect", self.effect))
        self._probe = traits.pop("probe", None)
        vars(self).update(traits)  # the others are attributes of `Tool`, by the same names
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)

    async def run(self, call: ToolCall) -> ToolOutput:
        """Call the function with the arguments, converted to its types. The model reads whatever it raises."""
        if self.is_external_tool:
            return await super().run(call)
        pieces = Pieces()
        try:
            result = await self._called(call.arguments, pieces)
        except NeedsDecision:
            raise
        except ToolError as error:
            raise ToolError(pieces.before(str(error))) from error
        except Exception as error:  # A tool's author may raise anything; one failed call must not end the reply.
            if isinstance(error, ValidationError):
                details = error.errors(include_url=False, include_context=False)
                sentence = "; ".join(
                    f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in details[:10]
                )
            else:
                sentence = words_of(error)
            raise ToolError(pieces.before(sentence)) from error
        return pieces.output() if result is pieces else tool_output(result)

    @property
    def probes(self) -> bool:
        return self._probe is not None

    async def probe(self, call: ToolCall) -> Found | Finding:
        if self._probe is None:
            return "unknown"
        look, in_thread = self._probe, not inspect.iscoroutinefunction(self._probe)
        found: Any = await in_own_thread(lambda _: look(call)) if in_thread else look(call)
        answer: Found | Finding = await found if inspect.isawaitable(found) else found
        return answer

    async def _called(self, arguments: Mapping[str, Any], pieces: Pieces) -> Any:
        """What the function returns; `pieces`, when it is a generator and all that it yields is in there."""
        given = ArgsKwargs((), dict(arguments))
        if inspect.iscoroutinefunction(self._function) or inspect.isasyncgenfunction(self._function):
            result = self._adapter.validate_python(given)
        else:
            result = await in_own_thread(lambda stop: _gathered(self._adapter.validate_python(given), pieces, stop))
        if inspect.isawaitable(result):
            result = await result
        if not inspect.isasyncgen(result):
            return result
        async with contextlib.aclosing(result):
            async for piece in result:
                pieces.take(piece)
        return pieces


def _gathered(result: object, pieces: Pieces, stop: threading.Event) -> object:
    """The result itself when it is no generator. One is run to its end here, in its thread, or until it is to stop."""
    if not inspect.isgenerator(result):
        return result
    with contextlib.closing(result):
        for piece in result:
            pieces.take(piece)
            if stop.is_set():
                raise asyncio.CancelledError
    return pieces


@overload
def tool(function: Function, /) -> FunctionTool: ...
@overload
def tool(**traits: Unpack[ToolTraits]) -> Callable[[Function], FunctionTool]: ...
def tool(
    function: Function | None = None, /, **traits: Unpack[ToolTraits]
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool of a function: `@tool`, or `@tool(effect=Effect.READ)`.

    Parameters become the schema (`Annotated[int, Field(description=…)]` is understood); the docstring's first paragraph
    becomes the description, and what it says of parameters (Google's, NumPy's, Sphinx' style) theirs. Say `effect`
    truthfully: `read` and `idempotent` calls are retried, `once` never. `probe` looks whether a call happened whose
    outcome was lost: see `Tool.probe`. `result_schema` is what results of an external tool have to fit. Raises
    TypeError for a signature that no JSON object can fill.

    What a generator yields is shown as it comes, and is the result all together. A plain function runs in a thread, and
    nobody can end that: interrupted or out of time, it may run on, and the model is told so. An async one is stopped
    where it waits, a generator also where it yields.
    """
    make = functools.partial(FunctionTool, **traits)
    return make if function is None else make(function)


def _refuse_unnamed(function: Function) -> None:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(
                f"{function.__name__}: the parameter {str(parameter)!r} can't be given by name, but the model names all"
            )


def _adapter(function: Function) -> TypeAdapter[Any]:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, function))
        adapter.json_schema()
    except PydanticUserError as error:
        raise TypeError(f"{function.__name__}: a parameter has a type that JSON can't carry: {error.message}") from None
    return adapter


def _what_it_does(function: Function, said: Docstring) -> str:
    """The docstring's first paragraph, without what it says of parameters."""
    if not said.meta:
        return (inspect.getdoc(function) or "").split("\n\n")[0].strip()
    goes_on = (said.long_description or "").split("\n\n")[0] if not said.blank_after_short_description else ""
    return "\n".join(filter(None, (said.short_description, goes_on))).strip()
