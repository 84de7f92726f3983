"""The contexts that this process keeps, by content: messages, system prompts and tool schemas, and how it gets the
rest.

Nothing here is needed for correctness. A session's messages are kept in order with the digest of the chain up to
each; an address (`prefix digest + tail`) that does not fit is filled up from the session itself. Prompts and
schemas cross the history once, not with every model call.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from longhaul.activities.contract import ContextAddress, Inline, Ref, SpecTexts, TranscriptPage
from longhaul.agent.plain.values import chain_digest, digest_of
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, Msg, message_digest, parts_of
from longhaul.agent.values.conversation.tools import ToolDescriptor

log = logging.getLogger(__name__)

Pull = Callable[[int], Awaitable[TranscriptPage]]
"""One page of the session's transcript from an index on."""

KEPT_LOOSE = 200
"""Tool results that no model call has taken up yet, per session."""


@dataclass
class SessionContext:
    """The messages of one session and epoch, as far as this process has seen them."""

    messages: list[Msg] = field(default_factory=list)
    chain: list[str] = field(default_factory=list)
    """`chain[n]` is the digest of the context that ends with `messages[n]`."""
    loose: "OrderedDict[str, tuple[Msg, int]]" = field(default_factory=OrderedDict)
    """By digest, with its tokens."""
    speakers: set[str] = field(default_factory=set[str])
    """Whoever has spoken as an assistant, also in what was cut since."""
    bytes: int = 0
    token_sums: list[int] = field(default_factory=list)
    """`token_sums[n]` counts the tokens up to and with `messages[n]`; only as far as they are known."""
    marked: dict[int, Msg] = field(default_factory=dict[int, Msg])
    """Messages that came with a secret, by their place, as they stand here; until the session is told."""

    def has(self, digest: str, length: int) -> bool:
        return length == 0 or (length <= len(self.chain) and self.chain[length - 1] == digest)

    def append(self, message: Msg, own_digest: str, tokens: int | None = None) -> str:
        """The context's digest with it. `tokens`: of the message, where somebody has counted them."""
        if tokens is not None and len(self.token_sums) == len(self.messages):
            self.token_sums.append((self.token_sums[-1] if self.token_sums else 0) + tokens)
        digest = chain_digest(self.chain[-1] if self.chain else "", own_digest)
        self.messages.append(message)
        self.chain.append(digest)
        self.bytes += size_of(message)
        if message.role == "assistant":
            self.speakers.add(message.name)
        return digest

    def cut(self, length: int) -> None:
        """Forget what comes after: a lost attempt's messages must not stay in the way."""
        for message in self.messages[length:]:
            self.bytes -= size_of(message)
        del self.messages[length:]
        del self.chain[length:]
        del self.token_sums[length:]
        self.marked = {at: message for at, message in self.marked.items() if at < length}

    def take_marked(self) -> dict[int, Msg]:
        """For the record. An attempt that is lost takes nothing along: the session sends those messages again."""
        taken, self.marked = self.marked, {}
        return taken

    def tokens(self, count: Callable[[Msg], int]) -> int:
        """Of all messages, each counted once however often this is asked."""
        for message in self.messages[len(self.token_sums) :]:
            before = self.token_sums[-1] if self.token_sums else 0
            self.token_sums.append(before + count(message))
        return self.token_sums[-1] if self.token_sums else 0

    def uncounted(self) -> int:
        """Bytes of the messages that `tokens` would have to look at."""
        return sum(size_of(message) for message in self.messages[len(self.token_sums) :])

    def told_to(self, agent: str) -> list[Msg]:
        """The messages as that agent hears them. Another agent's words are a user turn to it: only its own may be the
        assistant's."""
        if self.speakers <= {agent}:
            return list(self.messages)
        return [
            message.model_copy(update={"role": "user"})
            if message.name != agent and message.role == "assistant"
            else message
            for message in self.messages
        ]

    def keep(self, digest: str, message: Msg, tokens: int) -> None:
        self.loose[digest] = (message, tokens)
        while len(self.loose) > KEPT_LOOSE:
            self.loose.popitem(last=False)


WEIGHED_EACH = 20
"""Askings, from one weighing of all sessions to the next: of a thousand it takes a tenth of a millisecond."""


class Contexts:
    """The sessions of one worker process, least recently used out first, bounded in bytes."""

    def __init__(self, capacity_bytes: int = 256_000_000, marked: Callable[[Msg], Msg] = lambda said: said) -> None:
        """`marked`: a message without secrets; the same one if it holds none."""
        self._capacity = capacity_bytes
        self._marked = marked
        self._sessions: OrderedDict[tuple[str, int], SessionContext] = OrderedDict()
        self._asked = 0
        self.pulls = 0
        """Times that something had to be fetched from a session."""

    def session(self, workflow_id: str, epoch: int) -> SessionContext:
        key = (workflow_id, epoch)
        if key not in self._sessions:
            # What a session showed its model two summaries ago is asked for by nobody, and takes the room of others.
            for old in [key for key in self._sessions if key[0] == workflow_id and key[1] < epoch - 1]:
                del self._sessions[old]
        session = self._sessions.setdefault(key, SessionContext())
        self._sessions.move_to_end(key)
        self._asked += 1
        if self._asked % WEIGHED_EACH == 0:
            total = sum(each.bytes for each in self._sessions.values())
            while total > self._capacity and len(self._sessions) > 1:
                _, dropped = self._sessions.popitem(last=False)
                total -= dropped.bytes
        return session

    def keep_result(self, workflow_id: str, epoch: int, message: Msg, tokens: int) -> str:
        """Keep a call's result for the next model call, which takes it up; returns its digest."""
        digest = message_digest(message)
        self.session(workflow_id, epoch).keep(digest, message, tokens)
        return digest

    async def resolve(self, session: SessionContext, address: ContextAddress, pull: Pull) -> list[Msg]:
        """All messages of the address, in order; the session then ends with them."""
        if not session.has(address.prefix_digest, address.prefix_length):
            await self._fill(session, address, pull)
        session.cut(address.prefix_length)
        tail = [
            (item.digest, session.loose.get(item.digest))
            if isinstance(item, Ref)
            else (message_digest(item.message), (item.message, None))
            for item in address.tail
        ]
        if any(known is None for _, known in tail):
            self.pulls += 1
            fetched = await _fetch(pull, address.prefix_length, len(tail))
            tail = [(message_digest(message), (message, None)) for message in fetched]
        for item, (digest, known) in zip(address.tail, tail, strict=True):
            if known is not None:
                from_outside = isinstance(item, Inline) or known[0].role == "user"
                self._take(session, known[0], digest, known[1], from_outside=from_outside)
                session.loose.pop(digest, None)
        return list(session.messages)

    def _take(
        self, session: SessionContext, message: Msg, digest: str, tokens: int | None, *, from_outside: bool
    ) -> None:
        """What no activity made may hold a secret. Its digest is that of what stands here, wherever it is fetched."""
        shown = self._marked(message) if from_outside else message
        if shown is not message:
            session.marked[len(session.messages)] = shown
            digest, tokens = message_digest(shown), None
        session.append(shown, digest, tokens)

    async def _fill(self, session: SessionContext, address: ContextAddress, pull: Pull) -> None:
        """Fetch the prefix: what is missing at the end if the rest fits, else all of it."""
        self.pulls += 1
        for start in dict.fromkeys((min(len(session.chain), address.prefix_length - 1), 0)):
            session.cut(start)
            for message in await _fetch(pull, start, address.prefix_length - start):
                digest = message_digest(message)
                self._take(session, message, digest, None, from_outside=message.role == "user")
            if session.has(address.prefix_digest, address.prefix_length):
                return
        log.warning("a context was rebuilt with another digest; it continues from the new one")


async def message_at(pull: Pull, index: int) -> Msg:
    """One message of the session's transcript."""
    return (await _fetch(pull, index, 1))[0]


async def _fetch(pull: Pull, start: int, count: int) -> list[Msg]:
    messages: list[Msg] = []
    while len(messages) < count:
        page = await pull(start + len(messages))
        if not page.messages:
            raise LookupError(
                f"the session has {page.total} messages, and number {start + len(messages)} was asked for"
            )
        messages.extend(page.messages)
    return messages[:count]


def size_of(message: Msg) -> int:
    """Bytes, near enough to bound a cache: text and data, and a constant for each object."""
    parts = (part for block in message.content for part in parts_of(block))
    return 200 + sum(200 + (len(part) if isinstance(part, str) else _data_size(part)) for part in parts)


def _data_size(block: DataBlock) -> int:
    return len(block.source.data if isinstance(block.source, Base64Source) else block.source.url)


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
