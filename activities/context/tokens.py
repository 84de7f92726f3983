"""Counts the tokens that a model will read: of a text, a message, a tool's output, the system prompt with the tools.

Counts are exact for OpenAI's models where tiktoken's file is at hand, and estimates elsewhere. They are recorded with
what was counted, so a session may mix both; the provider's report corrects them (`agent.plain.measures`).

tiktoken's encodings, where their files are at hand already: nothing is ever downloaded, and nobody waits.

tiktoken fetches a missing file when it is first asked, without a limit of time. So it is asked only when the file lies
where tiktoken would look, whole and unspoilt, and in a thread of its own: loading takes half a second, and holds the
interpreter for 150 ms of it, once in a process.

Estimates how many tokens a text has, where no tokenizer is at hand.

Tokenizers cut where the kind of character changes, so what is counted is such places: each byte of the UTF-8 text is
replaced by a letter for its kind, bytes that only continue a character are dropped, and each pattern of kinds in
the table below adds its weight. The weights were fitted (least squares of the relative error, held to earlier ones) to
cl100k_base and o200k_base over prose in thirty languages, program text, JSON, logs, tables of numbers, paths, base64
and hex; English, German, Chinese, program text and JSON count most. Of two kilobytes that were left out of the fit,
German is off by 3 to 5 % (root mean square), Chinese by 2 to 5, JSON by 2 to 7, English by 2 to 6, program text by 5
to 13, and all of one kind together by less. Off by a fifth: Hebrew, and Dutch and traditional Chinese in the older
encoding. Off by up to half: letters at random, long runs of one character.
"""

import asyncio
import hashlib
import json
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tiktoken

from longhaul.activities.context.attachments import attachment_tokens
from longhaul.activities.context.context_cache import size_of
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    Msg,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    parts_of,
)
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.known_names import split_model

ESTIMATE_SLICE_CHARACTERS = 64_000
"""Each `count` holds the interpreter: a slice of this size for well under a millisecond."""

_BYTES_OF_RUNS = 64
"""Of one token at most, in the longest runs (blanks, rules): no text is nearly free."""


def _kinds() -> bytes:
    """For each byte the kind of character that it starts; `.` for punctuation and control characters."""
    ranges: Mapping[str, str] = {
        "a": "az",
        "A": "AZ",
        "0": "09",
        " ": "\t\t  ",
        "n": "\n\n\r\r",
        "-": "--==__**##~~..",  # drawn in long lines, which cost next to nothing
        "s": "\xc2\xc2\xe2\xe2",  # symbols: dashes, curly quotes, arrows, boxes
        "e": "\xc3\xcd",  # Latin letters with accents
        "g": "\xce\xcf",  # Greek
        "r": "\xd0\xd3",  # Cyrillic
        "h": "\xd4\xdf",  # Armenian, Hebrew, Arabic
        "i": "\xe0\xe1",  # India, Thailand, Georgia
        "k": "\xe3\xe3",  # kana, and the full stop of Chinese
        "z": "\xe4\xe9",  # Han
        "w": "\xea\xed",  # hangul
        "f": "\xee\xef",  # full-width punctuation
        "m": "\xf0\xff",  # emoji
    }
    table = bytearray(b"." * 256)
    for kind, ends in ranges.items():
        for first, last in zip(ends[::2], ends[1::2], strict=True):
            for byte in range(ord(first), ord(last) + 1):
                table[byte] = ord(kind)
    return bytes(table)


_KINDS = _kinds()
_CONTINUATIONS = bytes(range(0x80, 0xC0))

_ASCII: Mapping[bytes, int] = {
    b"a": 6, b"aaaaaaaa": 26, b"aaaaaaaaaaaa": 127, b"aaaaaaaaaaaaaaaa": 544, b" a": 77, b".a": 128, b"-a": 102,
    b" A": 123, b"nA": 56, b".A": 151, b"-A": 58, b"aA": 75, b"AA": 22,
    b"0": -20, b"000": -64, b"0000": 270, b" 0": 334, b".0": 174, b"-0": 264, b"0.0": 52,
    b"0a": 240, b"A0": 391, b"0A": 191,
    b".": 9, b". ": 41, b" .": 50, b".-": 189, b" -": 120,
    b"n": 92, b"nn": 9, b"n ": 48,
}  # fmt: skip
"""Hundredths of a token for each place where the kinds follow each other so; what is counted twice is taken off again.
The two encodings hardly differ here."""

_BEYOND_ASCII: Mapping[bytes, tuple[int, int]] = {
    b"s": (42, 124), b"e": (-135, 129), b"ae": (307, 25), b"eaaa": (63, 274), b"g": (39, 103), b"r": (58, 93),
    b"rrrr": (-148, -229), b"h": (40, 94), b"i": (38, 104), b"k": (76, 108), b"z": (78, 104), b"w": (75, 116),
    b"f": (103, 164), b"m": (229, 282),
}  # fmt: skip
"""The same for the newer encoding and for the older one, which has fewer pieces for the world's scripts."""


def estimate(text: str, encoding_name: str = "") -> int:
    """Tokens of `text` in the encoding of that name; any name but `o200k…` counts as cl100k_base, which errs upwards.

    Never more than the bytes of the text. One pass in slices: the time is linear, about 30 ms for a megabyte.
    """
    column = 0 if encoding_name.startswith("o200k") else 1
    hundredths = size_bytes = 0
    for start in range(0, len(text), ESTIMATE_SLICE_CHARACTERS):
        data = text[start : start + ESTIMATE_SLICE_CHARACTERS].encode("utf-8", "replace")
        kinds = data.translate(_KINDS, _CONTINUATIONS)
        count = kinds.count
        for places, weight in _ASCII.items():  # a sum of a generator takes half as long again
            hundredths += weight * count(places)
        if not data.isascii():
            hundredths += sum(weights[column] * kinds.count(places) for places, weights in _BEYOND_ASCII.items())
        size_bytes += len(data)
    return min(max(-(-hundredths // 100), -(-size_bytes // _BYTES_OF_RUNS)), size_bytes)


log = logging.getLogger(__name__)

LARGEST_FILE_BYTES = 50_000_000

_O200K = (
    "fb374d419588a4632f3f557e76b4b70aebbca790",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
)
_CL100K = (
    "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
)

FILES: Mapping[str, tuple[str, str]] = {"o200k_base": _O200K, "o200k_harmony": _O200K, "cl100k_base": _CL100K}
"""The file's name in the cache (sha-1 of the address) and its sha-256, as tiktoken has them."""


def encoding_name(model: str) -> str:
    """The encoding of an OpenAI model, named with our prefix and an organisation or without; empty when unknown."""
    name = (split_model(model)[1] or model).rpartition("/")[2]
    try:
        return tiktoken.encoding_name_for_model(name)
    except KeyError:
        return ""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Where tiktoken keeps its files; None where it was told to keep none."""
    default = str(Path(tempfile.gettempdir(), "data-gym-cache"))
    folder = environ.get("TIKTOKEN_CACHE_DIR", environ.get("DATA_GYM_CACHE_DIR", default))
    return Path(folder) if folder else None


def at_hand(name: str, environ: Mapping[str, str] = os.environ, files: Mapping[str, tuple[str, str]] = FILES) -> bool:
    """Whether tiktoken can load the encoding without the network: a file that is spoilt would be fetched again."""
    folder = cache_folder(environ)
    if folder is None or name not in files:
        return False
    file_name, digest = files[name]
    path = folder / file_name
    try:
        # The default folder is everybody's: a pipe there would be waited for, an endless file read to its end.
        if not path.is_file() or path.stat().st_size > LARGEST_FILE_BYTES:
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except (OSError, ValueError):
        return False


@dataclass
class _Search:
    over: threading.Event = field(default_factory=threading.Event)
    found: tiktoken.Encoding | None = None


class Encodings:
    """The encodings of one process; each is looked for once."""

    def __init__(
        self,
        is_at_hand: Callable[[str], bool] = at_hand,
        load: Callable[[str], tiktoken.Encoding] = tiktoken.get_encoding,
    ) -> None:
        self._is_at_hand = is_at_hand
        self._load = load
        self._searches: dict[str, _Search] = {}
        self._starting = threading.Lock()

    def get(self, name: str) -> tiktoken.Encoding | None:
        """The encoding if it is there by now; the first call starts the search. Never waits, never raises."""
        return self._search(name).found if name in FILES else None

    async def wait(self, name: str, longest_seconds: float) -> None:
        """Until the search is over, at most so long."""
        if name in FILES and not (over := self._search(name).over).is_set():
            await asyncio.to_thread(over.wait, longest_seconds)

    def _search(self, name: str) -> _Search:
        with self._starting:
            search = self._searches.get(name)
            if search is None:
                search = self._searches[name] = _Search()
                # A daemon: whatever the loading hangs on must not keep the process from ending.
                threading.Thread(target=self._run, args=(name, search), name=f"load {name}", daemon=True).start()
        return search

    def _run(self, name: str, search: _Search) -> None:
        try:
            if self._is_at_hand(name):
                search.found = self._load(name)
            else:
                log.info("tokens of %s are estimated: its file is not in tiktoken's cache", name)
        except Exception as error:  # noqa: BLE001  whatever a library's loading fails on, there is the estimate
            log.warning("tokens of %s are estimated: loading it failed: %s", name, error)
        finally:
            search.over.set()


MESSAGE_TOKENS = 4
"""Role and framing of a message, as OpenAI counts them."""
CALL_TOKENS = 8
"""Framing of a call or of a result, the id included."""
TOOL_TOKENS = 8
TOOLS_TOKENS = dict.fromkeys(("anthropic", "bedrock", "bedrock-mantle", "foundry", "vertex"), 346)
"""What a provider tells the model about tools as such, as soon as there is one (platform.claude.com, "Tool use")."""

INLINE_BYTES = 100_000
"""A larger message is counted in a thread (`count_aside`): tiktoken needs up to 30 ms for this much random text."""

SLICE_CHARACTERS = 16_000
"""tiktoken's splitter gives up, with a panic that `except Exception` does not catch, on a run of a million blanks."""
EXACT_SLICES = 40
"""Of a longer text so many slices are counted, and the estimate of the whole is corrected by them."""

FIXED_KEPT = 256


class TokenCounter:
    """Counts for any model by its full name (`openai:gpt-…`). Nothing here raises, downloads or waits for a file."""

    def __init__(self, encodings: Encodings | None = None) -> None:
        self._encodings = encodings or Encodings()
        self._fixed: dict[tuple[bytes, str], int] = {}

    async def prepare(self, model: str, longest_seconds: float = 5.0) -> bool:
        """Give the model's encoding time to load, so that a session's first counts are exact too; whether they are."""
        name = encoding_name(model)
        await self._encodings.wait(name, longest_seconds)
        return self._encodings.get(name) is not None

    def count_text(self, text: str, model: str) -> int:
        name = encoding_name(model)
        encoding = self._encodings.get(name)
        if encoding is None:
            return estimate(text, name)
        # All slices of a text up to 640,000 characters; of a longer one some, evenly spread and always the same.
        starts = range(0, len(text), SLICE_CHARACTERS)
        if len(starts) <= EXACT_SLICES:
            return sum(len(encoding.encode_ordinary(text[start : start + SLICE_CHARACTERS])) for start in starts)
        chosen = [starts[number * len(starts) // EXACT_SLICES] for number in range(EXACT_SLICES)]
        sample = [text[start : start + SLICE_CHARACTERS] for start in chosen]
        counted = sum(len(encoding.encode_ordinary(part)) for part in sample)
        return estimate(text, encoding.name) * counted // sum(estimate(part, encoding.name) for part in sample)

    def count_message(self, message: Msg, model: str) -> int:
        """With role, framing and the speaker's name. Blocks for the event loop's sake: see `count_aside`."""
        # `activities.models.requests.turns` puts the name of whoever is not simply the user before what they say.
        named = message.role == "user" and message.name.lower() != "user"
        name = self.count_text(f"{message.name}: ", model) if named else 0
        return MESSAGE_TOKENS + name + sum(self._block(block, model) for block in message.content)

    async def count_aside(self, message: Msg, model: str) -> int:
        """`count_message`, in a thread when the event loop would stand still for it."""
        if size_of(message) <= INLINE_BYTES:
            return self.count_message(message, model)
        return await asyncio.to_thread(self.count_message, message, model)

    def count_fixed(self, system: str, tools: Sequence[ToolDescriptor], model: str) -> int:
        """What comes with every call: the system prompt, and the tools as JSON. Kept, for it rarely changes."""
        texts = [system, *map(_tool_text, tools)]
        name = encoding_name(model)
        measure = f"{model.partition(':')[0]} {name} {self._encodings.get(name) is not None}"
        key = (hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest(), measure)
        if key not in self._fixed:
            if len(self._fixed) >= FIXED_KEPT:
                self._fixed.clear()
            self._fixed[key] = self._fixed_tokens(texts, model)
        return self._fixed[key]

    def _fixed_tokens(self, texts: list[str], model: str) -> int:
        tools = len(texts) - 1
        framing = MESSAGE_TOKENS + tools * TOOL_TOKENS
        told = TOOLS_TOKENS.get(model.partition(":")[0], 0) if tools else 0
        return framing + told + sum(self.count_text(text, model) for text in texts)

    def _block(self, block: ContentBlock, model: str) -> int:
        if isinstance(block, ToolCallBlock):
            return CALL_TOKENS + self.count_text(f"{block.name} {block.input}", model)
        parts = parts_of(block)
        tokens = sum(
            self.count_text(part, model) if isinstance(part, str) else attachment_tokens(part, model) for part in parts
        )
        if isinstance(block, ThinkingBlock):
            return tokens or _sealed(block)
        if isinstance(block, ToolResultBlock):
            return CALL_TOKENS + tokens + (0 if block.state is ToolResultState.SUCCESS else 2)
        return tokens


def _sealed(block: ThinkingBlock) -> int:
    """Thinking that only the provider can read: four characters of base64 hold three bytes, four bytes a token."""
    extras = block.model_extra or {}
    sealed = extras.get("redacted_thinking_data") or extras.get("encrypted_content") or ""
    return len(sealed) * 3 // 16 if isinstance(sealed, str) else 0


def _tool_text(tool: ToolDescriptor) -> str:
    try:
        schema = json.dumps(tool.input_schema, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        schema = ""  # no provider takes it either
    return f"{tool.name} {tool.description} {schema}"
