"""The most tokens that a model may write at a call: those of its answer, and of what it thinks before it answers."""

import re

from longhaul.activities.models.model_names import Called
from longhaul.activities.models.requests.openai_parts import is_grok, is_reasoning_model
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.profiles import APIS

THINKING_TOKENS = 25_000
"""What OpenAI advises to keep free for reasoning. It is a limit: what is not used costs nothing."""
MOST_TOKENS = 40_000
"""A limit is not raised beyond this: models refuse one that is above what they can say, 64,000 for the smallest that
think."""


def output_limit(config: ModelConfig, *, thinks: bool) -> int:
    """`thinks`: the provider counts thoughts against the limit. Of a small window never more than a quarter is kept
    for them."""
    limit = config.max_output_tokens
    if not thinks:
        return limit
    room = max(config.thinking_budget_tokens or 0, THINKING_TOKENS)
    return max(limit, min(limit + min(room, (config.context_length or 4 * room) // 4), MOST_TOKENS))


def most_written(called: Called | None, config: ModelConfig) -> int:
    """What a call may write at the most, whatever it is about: where nobody knows whether a model thinks, it does."""
    if called is None:
        return output_limit(config, thinks=True)
    config, name = called.config, called.told_by.rpartition(":")[2]
    asked = config.thinking_budget_tokens is not None or config.reasoning_effort is not None
    api = APIS[called.name.provider]
    if api == "script":
        return config.max_output_tokens
    if api == "messages":
        thinks = asked or not _OLDER_CLAUDE.match(name)
    else:
        thinks = asked or api == "ai" or is_reasoning_model(name) or is_grok(name)
    return max(output_limit(config, thinks=thinks), config.max_output_tokens + (config.thinking_budget_tokens or 0))


_OLDER_CLAUDE = re.compile(r"claude-([a-z]+-)?[1-4](\D|$)")
"""Those that do not think unless they are asked to."""
