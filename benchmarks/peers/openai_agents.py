"""OpenAI's Agents SDK under Temporal's plugin for it, with a scripted model; the tool is an activity."""

import json
import os
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow

with workflow.unsafe.imports_passed_through():
    from temporalio.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin
    from temporalio.openai_agents.testing import ResponseBuilders, TestModel, TestModelProvider
    from temporalio.openai_agents.workflow import activity_as_tool

    from agents import Agent, ModelProvider, ModelResponse, OpenAIProvider, Runner
    from benchmarks.bodies import body
    from benchmarks.peers.serving import serve

LIMIT = timedelta(seconds=60)


class Script(TestModel):
    """One call per step, then the answer; the prompt is "STEPS CHARS", and steps done are counted in the input."""

    def __init__(self) -> None:
        pass

    async def get_response(self, *_: Any, **asked: Any) -> ModelResponse:
        items = asked["input"]
        steps, chars = map(int, items[0]["content"].split())
        done = sum(item.get("type") == "function_call" for item in items)
        if done >= steps:
            return ResponseBuilders.output_message("done")
        call, item = f"call_{done:05d}", f"fc_{done:05d}"
        return ResponseBuilders.tool_call(json.dumps({"chars": chars}), "fetch", call_id=call, item_id=item)


@activity.defn
async def fetch(chars: int) -> str:
    """Return a text of that many characters."""
    return body(chars)


@workflow.defn(name="Plain")
class Plain:
    @workflow.run
    async def run(self, steps: int, chars: int) -> str:
        tool = activity_as_tool(fetch, start_to_close_timeout=LIMIT)
        agent = Agent(name="peer", instructions="You work.", model="script", tools=[tool])
        # Above the default of ten turns; left at that, the workflow task would fail for ever.
        result = await Runner.run(agent, f"{steps} {chars}", max_turns=steps + 1)
        return str(result.final_output)


def models() -> ModelProvider:
    """The script, or one over HTTP where its address is given."""
    url = os.environ.get("BENCH_MODEL_URL")
    over_http = OpenAIProvider(base_url=url, api_key="none", use_responses=False) if url else None
    return over_http or TestModelProvider(Script())


if __name__ == "__main__":
    parameters = ModelActivityParameters(start_to_close_timeout=LIMIT)
    serve([Plain], [fetch], OpenAIAgentsPlugin(model_params=parameters, model_provider=models()))
