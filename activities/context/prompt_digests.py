"""System prompts and tool schemas by digest: they cross the history once, not with every model call."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from longhaul.activities.contract import SpecTexts
from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.conversation.tools import ToolDescriptor

KEPT = 200


def prompt_digest(system_prompt: str) -> str:
    return digest_of(system_prompt)


def spec_digest(prompt: str, tools: Sequence[ToolDescriptor]) -> str:
    """Of both together, from the digest of the prompt: so whoever has only that can tell which of the two is new."""
    return digest_of({"prompt": prompt, "tools": [tool.model_dump(mode="json") for tool in tools]})


class Specs:
    """The texts that this process has seen."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, SpecTexts] = OrderedDict()

    def keep(self, system_prompt: str, tools: Sequence[ToolDescriptor]) -> str:
        """Remember them; the digest is what the session records."""
        digest = spec_digest(prompt_digest(system_prompt), tools)
        self._put(SpecTexts(spec_digest=digest, system_prompt=system_prompt, tools=tuple(tools)))
        return digest

    async def get(self, digest: str, pull: Callable[[], Awaitable[SpecTexts]]) -> SpecTexts:
        """The texts of `digest`, from the session itself when this process has not seen them."""
        known = self._known.get(digest) or await pull()
        self._put(known)
        return known

    def _put(self, spec: SpecTexts) -> None:
        self._known[spec.spec_digest] = spec
        self._known.move_to_end(spec.spec_digest)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
