"""Pydantic AI's durable agent (TemporalDurability; TemporalAgent is its deprecated form) with a scripted model.

Twice: as it comes, and with the framework's `continue_as_new` callback, which a user may write.
"""

import os
from collections.abc import Callable
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from pydantic_ai import Agent, RunContext
    from pydantic_ai.durable_exec.temporal import PydanticAIPlugin, PydanticAIWorkflow, TemporalDurability
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models import Model
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    from benchmarks.bodies import body
    from benchmarks.peers.serving import serve

NO_LIMIT = UsageLimits(request_limit=None)


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """One call per step, then the answer; the prompt is "STEPS CHARS", and steps done are counted in the messages."""
    del info
    steps, chars = map(int, str(messages[0].parts[-1].content).split())
    done = sum(isinstance(message, ModelResponse) for message in messages)
    if done >= steps:
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart("fetch", {"chars": chars}, f"call_{done:05d}")])


async def fetch(chars: int) -> str:
    """Return a text of that many characters."""
    return body(chars)


def continue_as_new(context: RunContext[None]) -> None:
    workflow.continue_as_new(args=[0, 0, context.messages])


def model() -> Model:
    """The script, or one over HTTP where its address is given."""
    url = os.environ.get("BENCH_MODEL_URL")
    return OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="none")) if url else FunctionModel(script)


def agent_named(name: str, continue_as_new: Callable[[RunContext[None]], Any] | None) -> Agent[None, str]:
    durable = TemporalDurability(continue_as_new=continue_as_new)
    return Agent(model(), name=name, instructions="You work.", tools=[fetch], capabilities=[durable])


plain = agent_named("plain", None)
rolling = agent_named("rolling", continue_as_new)


@workflow.defn(name="Plain")
class Plain(PydanticAIWorkflow):
    __pydantic_ai_agents__ = (plain,)

    @workflow.run
    async def run(self, steps: int, chars: int) -> str:
        result = await plain.run(f"{steps} {chars}", usage_limits=NO_LIMIT)
        return result.output


@workflow.defn(name="Rolling")
class Rolling(PydanticAIWorkflow):
    __pydantic_ai_agents__ = (rolling,)

    @workflow.run
    async def run(self, steps: int, chars: int, so_far: list[ModelMessage] | None = None) -> str:
        prompt = None if so_far else f"{steps} {chars}"
        result = await rolling.run(prompt, message_history=so_far, usage_limits=NO_LIMIT)
        return result.output


if __name__ == "__main__":
    serve([Plain, Rolling], [], PydanticAIPlugin())
