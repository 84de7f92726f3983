"""Files as documents of a knowledge base: which ones a folder has, their text, and the passages that it is cut into."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from longhaul.starter.cli.exit_codes import Misuse
from longhaul.stores.memories.knowledge import MOST_PASSAGES_OF_A_DOCUMENT

LARGEST_BYTES = 5_000_000
MOST_FILES = 5_000
PASSAGE_CHARS = 1_500
_HTML = (".html", ".htm", ".xhtml")
_NO_WORDS = ("script", "style", "template")
_LINES = ("p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "pre")


class NoDocument(Exception):
    """A file that is no document; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Document:
    digest: str
    passages: list[str]


def documents_in(paths: list[Path]) -> dict[str, Path]:
    """Files by the names that they get: as they are given, those of a folder below the folder's own name. Hidden files,
    and links that lead elsewhere, are left out. Blocking. Raises Misuse."""
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise Misuse(f"there is no file and no folder {str(path)!r}")
        for file in _files(path) if path.is_dir() else [path]:
            name = file.name if file == path else (Path(path.resolve().name) / file.relative_to(path)).as_posix()
            if name in found and found[name].resolve() != file.resolve():
                raise Misuse(f"two files would be the document {name!r}; put in the folder above them")
            found[name] = file
            if len(found) > MOST_FILES:
                raise Misuse(f"there are more than {MOST_FILES} files; put in fewer at once")
    return found


def _files(folder: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (
            path
            for name in sorted(names)
            if not name.startswith(".") and (path := Path(where, name)).is_file() and not path.is_symlink()
        )


def read_document(path: Path) -> Document:
    """Blocking. Raises NoDocument."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise NoDocument(f"it can't be read: {error.strerror}") from error
    if len(content) > LARGEST_BYTES:
        raise NoDocument(f"it has more than {LARGEST_BYTES // 1_000_000} MB; cut it up")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise NoDocument("it is no text in UTF-8; make a text file of it")
    passages = passages_of(_words_of(text) if path.suffix.lower() in _HTML else text)
    if not passages:
        raise NoDocument("it has no text")
    return Document(hashlib.sha256(content).hexdigest(), passages[:MOST_PASSAGES_OF_A_DOCUMENT])


def passages_of(text: str) -> list[str]:
    """Whole paragraphs, as many as fit together; one that is longer is cut between words where it has any."""
    passages = [""]
    for piece in (piece for paragraph in text.split("\n\n") for piece in _pieces(paragraph.strip())):
        if passages[-1] and len(passages[-1]) + len(piece) + 2 > PASSAGE_CHARS:
            passages.append("")
        passages[-1] = f"{passages[-1]}\n\n{piece}" if passages[-1] else piece
    return [passage for passage in passages if passage]


def _pieces(paragraph: str) -> Iterator[str]:
    while len(paragraph) > PASSAGE_CHARS:
        cut = max(paragraph.rfind(" ", 0, PASSAGE_CHARS), paragraph.rfind("\n", 0, PASSAGE_CHARS))
        cut = cut if cut > 0 else PASSAGE_CHARS
        yield paragraph[:cut].strip()
        paragraph = paragraph[cut:].strip()
    if paragraph:
        yield paragraph


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._silent += tag in _NO_WORDS
        if tag in _LINES:
            self.words.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(self._silent - (tag in _NO_WORDS), 0)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.words.append(data)


def _words_of(html: str) -> str:
    page = _Page()
    page.feed(html)
    page.close()
    return "".join(page.words)
