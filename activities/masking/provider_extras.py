"""Cuts secrets out of what providers send along with blocks, which can't be changed: it is left out."""

import json
from typing import Any, TypeVar

from longhaul.activities.masking.masker import Masker
from longhaul.agent.values.conversation.messages import UNSIGNED, TextBlock, ThinkingBlock, ToolCallBlock

Said = TypeVar("Said", TextBlock, ToolCallBlock)


def without_secret_extras(block: Said, masker: Masker) -> Said:
    """The same block, or one without extras if they hold a secret."""
    return block.model_copy(update={"extras": {}}) if _found_in(block.extras, masker) else block


def without_secrets(thought: ThinkingBlock, masker: Masker) -> ThinkingBlock | TextBlock:
    """The same, if it holds none. What a provider has signed becomes text: the signature would not fit any more."""
    extras = thought.model_extra or {}
    if _found_in(extras, masker):
        return TextBlock(text=masker.masked(thought.thinking))
    if not masker.found(thought.thinking):
        return thought
    masked = masker.masked(thought.thinking)
    if extras and extras.keys() <= UNSIGNED:
        return thought.model_copy(update={"thinking": masked})
    return TextBlock(text=masked)


def _found_in(extras: dict[str, Any], masker: Masker) -> bool:
    return bool(extras) and bool(masker.found(json.dumps(extras, ensure_ascii=False)))
