"""Plain functions as tools: `@tool` takes the schema from the signature and the description from the docstring."""

import asyncio
import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import ArgsKwargs, PydanticSerializationError, to_jsonable_python

from activities.tools.clipping import clipped
from activities.tools.tool import Found, NeedsDecision, Tool, ToolCall, ToolError, ToolOutput
from agent.deadline import Deadline
from agent.doubts import Finding
from agent.messages import DataBlock, TextBlock
from agent.tools import Effect

OUTPUT_CAP = 20_000_000
"""Characters. What the context has no room for is kept whole outside, so this guards the worker's memory alone."""

Function = Callable[..., Any]
Probe = Callable[[ToolCall], Found | Finding | Awaitable[Found | Finding]]


class FunctionTool(Tool):
    """A function, sync or async, that the model may call. Still callable from Python as before."""

    def __init__(  # noqa: PLR0913  one parameter for each thing that a tool says of itself
        self,
        function: Function,
        *,
        effect: Effect = Effect.ONCE,
        concurrency_safe: bool = False,
        read_only: bool = False,
        is_external_tool: bool = False,
        name: str | None = None,
        description: str | None = None,
        timeout_seconds: float = 600.0,
        probe: Probe | None = None,
        deadline: Deadline | None = None,
        result_schema: dict[str, Any] | None = None,
        untrusted: bool = False,
    ) -> None:
        _refuse_unnamed(function)
        self._function = function
        self._adapter = _adapter(function)
        self.name = name or function.__name__
        self.description = description or _first_paragraph(function)
        self.input_schema = self._adapter.json_schema()
        self.effect = Effect(effect)
        self.concurrency_safe = concurrency_safe
        self.read_only = read_only
        self.is_external_tool = is_external_tool
        self.timeout_seconds = timeout_seconds
        self._probe = probe
        self.deadline = deadline
        self.result_schema = result_schema
        self.untrusted = untrusted
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)

    async def run(self, call: ToolCall) -> ToolOutput:
        """Call the function with the arguments as its types say. Whatever it raises is told to the model."""
        if self.is_external_tool:
            return await super().run(call)
        try:
            result = await self._called(call.arguments)
        except (ToolError, NeedsDecision):
            raise
        except Exception as error:  # A tool's author may raise anything; one failed call must not end the reply.
            raise ToolError(_sentence(error)) from error
        return _tool_output(result)

    @property
    def probes(self) -> bool:
        return self._probe is not None

    async def probe(self, call: ToolCall) -> Found | Finding:
        if self._probe is None:
            return "unknown"
        in_thread = not inspect.iscoroutinefunction(self._probe)
        found = await asyncio.to_thread(self._probe, call) if in_thread else self._probe(call)
        return await found if inspect.isawaitable(found) else found

    async def _called(self, arguments: Mapping[str, Any]) -> Any:
        given = ArgsKwargs((), dict(arguments))
        if inspect.iscoroutinefunction(self._function):
            return await self._adapter.validate_python(given)
        result = await asyncio.to_thread(self._adapter.validate_python, given)
        return await result if inspect.isawaitable(result) else result


def tool(  # noqa: PLR0913  one parameter for each thing that a tool says of itself
    *,
    effect: Effect = Effect.ONCE,
    concurrency_safe: bool = False,
    read_only: bool = False,
    is_external_tool: bool = False,
    name: str | None = None,
    description: str | None = None,
    timeout_seconds: float = 600.0,
    probe: Probe | None = None,
    deadline: Deadline | None = None,
    result_schema: dict[str, Any] | None = None,
    untrusted: bool = False,
) -> Callable[[Function], FunctionTool]:
    """Make a tool of a function: `@tool(effect=Effect.READ)`.

    Parameters become the schema (`Annotated[int, Field(description=…)]` is understood); the docstring's first paragraph
    becomes the description. Say `effect` truthfully: `read` and `idempotent` calls are retried, `once` never. `probe`
    looks whether a call happened whose outcome was lost: see `Tool.probe`. `result_schema` is what results of an
    external tool have to fit. Raises TypeError for a signature that no
    JSON object can fill.
    """
    return lambda function: FunctionTool(
        function,
        effect=effect,
        concurrency_safe=concurrency_safe,
        read_only=read_only,
        is_external_tool=is_external_tool,
        name=name,
        description=description,
        timeout_seconds=timeout_seconds,
        probe=probe,
        deadline=deadline,
        result_schema=result_schema,
        untrusted=untrusted,
    )


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


def _first_paragraph(function: Function) -> str:
    return (inspect.getdoc(function) or "").split("\n\n")[0].strip()


def _sentence(error: Exception) -> str:
    if isinstance(error, ValidationError):
        details = error.errors(include_url=False, include_context=False)
        return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in details[:10])
    return clipped(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__, 10_000)


def _tool_output(result: object) -> ToolOutput:
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


def _as_json(result: object) -> str:
    try:
        return json.dumps(to_jsonable_python(result), ensure_ascii=False)
    except (PydanticSerializationError, ValueError) as error:
        raise ToolError(f"the tool did its work, but its result can't be written as JSON: {error}") from None
