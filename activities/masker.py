"""Cuts secrets out of text: as they are, and in the forms in which programs print them.

Found: any case, wrapped lines, JSON and shell escapes, doubled quotes, HTML and XML, URL encoding, hex with the usual
separators, and base64 with any alignment, also within longer texts. Not found: what a program makes of a secret on
purpose, such as its letters in reverse, or with other text between them, as the columns of a dump.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, TypeVar

from longhaul.agent.values.conversation.messages import UNSIGNED, TextBlock, ThinkingBlock, ToolCallBlock

_SLASHES = r"\\{0,8}"
_BREAK = r"(?:[\r\n]|%(?:25){0,3}0[ad]|\\{1,8}(?:[nr]|u000[ad]|x0[ad]|01[25])){0,4}"
"""Where a line was wrapped, or a secret of several lines goes on."""
_BETWEEN_BYTES = r"(?:\\{0,8}x|0x|[\s:,\-]){0,4}"
_ESCAPE = re.compile(
    r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|([0-3][0-7]{2})|(.))|%(?:25)*([0-9a-f]{2})", re.IGNORECASE | re.DOTALL
)
_MARKUP, _BREAKS = ({"&": "&amp;", "<": "&lt;", ">": "&gt;"}, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
_DOUBLE, _SINGLE = ('"', "&quot;", "&#34;"), ("'", "&#39;", "&#x27;", "&apos;")
_QUOTED = [
    str.maketrans(quoted)
    for quoted in (
        *(
            {**_MARKUP, **breaks, '"': double, "'": single}
            for breaks, double, single in product(({}, _BREAKS), _DOUBLE, _SINGLE)
        ),
        *({"'": within} for within in ("'\\''", "'\"'\"'", "''")),
        {'"': '""'},
    )
]
"""How HTML and XML are written by the usual libraries, words of a shell in quotes, and CSV, YAML and SQL."""
_LAYERS = 4
"""So often a text may have been quoted within another."""
_ENDS = 40
_NO_SEPARATORS = {ord(char): None for char in ":,-"}
_UNFINISHED = re.compile(r"(?:\\+(?:u[0-9a-f]{0,3}|x[0-9a-f]?|[0-3][0-7]?)?|%(?:25)*[0-9a-f]?)\Z", re.IGNORECASE)
_LONGEST_ESCAPE = 64
_GLANCE = 48
"""So many characters tell mostly that a text does not begin as a secret does."""
_TWINS = {" ": "+", "+": "-", "/": "_"}
_EXPANSION = 8
"""So many characters may stand for one character of a secret, in what a stream holds back."""


@dataclass(frozen=True, slots=True)
class _Forms:
    """How one secret may look."""

    name: str
    plain: tuple[str, ...]
    encoded: tuple[str, ...]
    hexadecimal: tuple[str, ...]
    pattern: str

    def shows_in(self, view: "_View") -> bool:
        return (
            any(form in view.text for form in self.plain)
            or any(form in view.encoded for form in self.encoded)
            or any(form in text for form in self.hexadecimal for text in view.bytewise)
        )

    def may_open_with(self, view: "_View") -> bool:
        """Whether the view is the beginning of a form, and not yet all of it."""
        return (
            any(_is_beginning(view.text, form) for form in self.plain)
            or any(_is_beginning(view.encoded, form) for form in self.encoded)
            or any(_is_beginning(text, form) for form in self.hexadecimal for text in view.bytewise)
        )

    def first_letters(self) -> set[str]:
        letters = {form[:1] for form in (*self.plain, *self.encoded, *self.hexadecimal)}
        return letters | {_TWINS[char] for char in letters if char in _TWINS}


class _View(NamedTuple):
    """A text as forms are looked for in it: in small letters, without line breaks."""

    text: str
    encoded: str
    """In the usual alphabet of base64."""
    bytewise: tuple[str, ...]
    """Without what stands between the bytes of a dump."""


class Masker:
    """Replaces the secrets by their names. Without secrets it gives back what it is given."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """Values by name, each of at least six characters."""
        forms = [form for name, value in secrets.items() for form in (_forms(name, value), *_quoted(name, value))]
        self._forms = sorted(forms, key=lambda form: (-len(form.plain[0]), form.name, form.plain))
        self._marks = {f"s{at}": mark(form.name) for at, form in enumerate(self._forms)}
        patterns = (f"(?P<s{at}>{form.pattern})" for at, form in enumerate(self._forms))
        self._pattern = re.compile("|".join(patterns) or r"(?!)", re.IGNORECASE)
        letters = {"\\", "%"}.union(*(form.first_letters() for form in self._forms))
        self._opening = re.compile(f"[{re.escape(''.join(sorted(letters)))}]", re.IGNORECASE)
        self.reach = max((len(form.plain[0]) for form in forms), default=0) * _EXPANSION + 64
        """Characters that one secret may take, in any form."""

    def __bool__(self) -> bool:
        return bool(self._forms)

    def found(self, text: str) -> str:
        """The name of a secret that the text holds, in whatever form; empty when there is none."""
        if not self._forms or not text:
            return ""
        views = tuple(_views(text))
        for form in self._forms:
            if any(form.shows_in(view) for view in views):
                return form.name
        return ""

    def masked(self, text: str) -> str:
        """The text with a mark in the place of each secret. What can't be cut out takes its line along, or all."""
        if not self.found(text):
            return text
        text = self._pattern.sub(self._mark_of, text)
        if not self.found(text):
            return text
        lines = [mark(name) if (name := self.found(line)) else line for line in text.split("\n")]
        text = "\n".join(lines)
        return mark(name) if (name := self.found(text)) else text

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where secrets stand, from the left."""
        return [found.span() for found in self._pattern.finditer(text)] if self.found(text) else []

    def opening(self, text: str, start: int = 0) -> int:
        """The first place from which on all that there is may be the beginning of a secret; the end if there is none.

        Linear in the text: at most places the first characters rule it out.
        """
        for found in self._opening.finditer(text, start) if self._forms else ():
            at = found.start()
            if self._may_open_with(text[at : at + _GLANCE]) and self._may_open_with(text[at:]):
                return at - len(_unfinished(text[:at]))
        return len(text)

    def _may_open_with(self, text: str) -> bool:
        for view, unfinished in _beginnings(text):
            if (unfinished and not view.text) or any(form.may_open_with(view) for form in self._forms):
                return True
        return False

    def _mark_of(self, found: re.Match[str]) -> str:
        return self._marks[found.lastgroup or ""]


NO_SECRETS = Masker({})


def mark(name: str) -> str:
    return f"[secret {name}]"


def _quoted(name: str, value: str) -> Iterator[_Forms]:
    """Each way to quote it that gives another text; without what base64 and dumps make of that."""
    for text in {value.translate(quoted) for quoted in _QUOTED} - {value}:
        flat = text.replace("\r", "").replace("\n", "")
        pattern = _in_order([_letter(char, twins={" ": "+"}) for char in flat], _BREAK)
        yield _Forms(name, (flat.lower(),), (), (), pattern)


def _forms(name: str, value: str) -> _Forms:
    data = value.encode()
    text = value.replace("\r", "").replace("\n", "")
    encoded = tuple(_aligned(data, offset) for offset in range(3))
    letters = [_letter(char, twins={" ": "+"}) for char in text]
    cores = [[_letter(char, twins={"+": "-", "/": "_"}) for char in core] for core in encoded]
    patterns = [_in_order(parts, _BREAK) for parts in (letters, *cores)]
    patterns.append(_in_order([f"{byte:02x}" for byte in data], _BETWEEN_BYTES))
    # As unescaping gives them back: one character for each byte, or for each half of a pair.
    spelt = (text, text.replace(" ", "+"), text.encode().decode("latin-1"), "".join(map(chr, _utf16(text))))
    plain = tuple(dict.fromkeys(each.lower() for each in spelt))
    return _Forms(name, plain, tuple(_standard(core.lower()) for core in encoded), (data.hex(),), "|".join(patterns))


def _aligned(data: bytes, offset: int) -> str:
    """The characters of base64 that say nothing but `data`, when `offset` bytes of something else stand before it."""
    whole = base64.b64encode(b"\0" * offset + data).decode().rstrip("=")
    return whole[-(-8 * offset // 6) : 8 * (offset + len(data)) // 6]


def _in_order(parts: list[str], between: str) -> str:
    """One part after the other. Of many, those at both ends: a pattern of a long key would take seconds to be made."""
    if len(parts) <= 3 * _ENDS:
        return between.join(parts)
    head, tail = between.join(parts[:_ENDS]), between.join(parts[-_ENDS:])
    return rf"{head}[\s\S]{{0,{len(parts) * _EXPANSION}}}?{tail}"


def _letter(char: str, twins: Mapping[str, str]) -> str:
    """A pattern of one character in all its spellings; `twins`: what another alphabet has in its place."""
    plain = "|".join(map(re.escape, char + twins.get(char, "")))
    data = char.encode()
    percent = "".join(f"%(?:25){{0,3}}{byte:02x}" for byte in data)
    codes = "|".join((
        _SLASHES.join(f"u{unit:04x}" for unit in _utf16(char)),
        _SLASHES.join(f"x{byte:02x}" for byte in data),
        _SLASHES.join(f"{byte:03o}" for byte in data),
    ))  # fmt: skip
    return rf"(?:{_SLASHES}(?:{plain})|{percent}|\\{{1,8}}(?:{codes}))"


def _utf16(text: str) -> list[int]:
    data = text.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]


def _views(text: str) -> Iterator[_View]:
    """The text as it is, and once more for each layer of escapes."""
    for _ in range(_LAYERS):
        flat = text.lower().replace("\n", "").replace("\r", "")
        bytewise = "".join(text.lower().split()).translate(_NO_SEPARATORS).replace("\\x", "").replace("\\", "")
        yield _View(flat, _standard(flat), (bytewise, bytewise.replace("0x", "")))
        if "\\" not in text and "%" not in text:
            return
        decoded = _ESCAPE.sub(_unescaped, text)
        if decoded == text:
            return
        text = decoded


def _beginnings(text: str) -> Iterator[tuple[_View, str]]:
    """Views of a text that goes on: without the escape that has only started, which is given as well."""
    for _ in range(_LAYERS):
        unfinished = _unfinished(text)
        text = text[: len(text) - len(unfinished)]
        view = next(_views(text))
        # The 0 may be that of 0x.
        yield view._replace(bytewise=(*view.bytewise, *(each.removesuffix("0") for each in view.bytewise))), unfinished
        decoded = _ESCAPE.sub(_unescaped, text)
        if decoded == text:
            return
        text = decoded


def _unfinished(text: str) -> str:
    found = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_ESCAPE))
    return found[0] if found else ""


def _is_beginning(text: str, form: str) -> bool:
    return 0 < len(text) < len(form) and form.startswith(text)


def _standard(encoded: str) -> str:
    return encoded.replace("-", "+").replace("_", "/")


def _unescaped(found: re.Match[str]) -> str:
    unit, byte, octal, other, percent = found.groups()
    if other is not None:
        return {"n": "\n", "r": "\r"}.get(other, other)
    return chr(int(unit or byte or percent, 16) if octal is None else int(octal, 8))


_LONG = 512
_PATIENCE = 32
"""A long beginning is looked at again when it has grown by this part of itself: so that time stays linear."""


class MaskedStream:
    """Gives the text on as it comes, and holds back only what may be the beginning of a secret until more has come."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = ""
        self._look_at = 0

    def feed(self, piece: str) -> str:
        """As much as can be told by now, masked; nothing while a secret may be on its way."""
        self._held += piece
        if not self._masker:
            return self.end()
        if len(self._held) < self._look_at:
            return ""
        cut = self._cut()
        said, self._held = self._held[:cut], self._held[cut:]
        kept = len(self._held)
        self._look_at = kept + (kept // _PATIENCE if kept > _LONG else 0)
        return self._masker.masked(said)

    def end(self) -> str:
        """The rest."""
        said, self._held = self._held, ""
        return self._masker.masked(said)

    def _cut(self) -> int:
        """Where what is held back begins. No form of a secret is longer than twice the reach."""
        length, reach = len(self._held), self._masker.reach
        cut = self._masker.opening(self._held, max(0, length - 2 * reach))
        if cut == 0 and length >= 2 * reach:
            cut = length - reach
        return next((end for start, end in self._masker.spans(self._held) if start < cut < end), cut)


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
