"""What an activity gets from its own session when it asks."""

from agent.messages import Msg
from agent.tools import ToolDescriptor
from agent.values import Guest, sparse


class TranscriptPage(Guest):
    """Part of a transcript: messages from `start`; `total` is the whole length."""

    epoch: int
    start: int
    total: int
    messages: tuple[Msg, ...]


class SpecTexts(Guest):
    """What a model call needs beside the context."""

    spec_digest: str
    system_prompt: str
    tools: tuple[ToolDescriptor, ...]
    skills: tuple[str, ...] = sparse(())
    """The folders that the agent names."""
