"""Hooks on the system prompt for the tests: LONGHAUL_HOOKS=tests.workflows.prompt_hooks:NAME."""

from longhaul.activities.context.prompt_hooks import PromptContext


async def number_calls(system_prompt: str, context: PromptContext) -> str:
    return f"{system_prompt}\nThis is call {context.call_number} of {context.agent} for {context.user_id}."


def swear(system_prompt: str, _context: PromptContext) -> str:
    return f"{system_prompt}\nSworn."


def fail(_prompt: str, _context: PromptContext) -> str:
    raise RuntimeError("the policy server is away")


def name_session(system_prompt: str, context: PromptContext) -> str:
    return f"{system_prompt}\nThis is {context.session_id}."
