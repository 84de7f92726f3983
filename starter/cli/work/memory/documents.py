"""Files as documents of a knowledge base: which ones a folder has, their text, and the passages that it is cut into."""

import hashlib
import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.work.memory import words_of_file
from longhaul.stores.memories.memories import MOST_PASSAGES_OF_A_DOCUMENT

LARGEST_BYTES = 5_000_000
LARGEST_PDF_BYTES = 50_000_000
MOST_FILES = 5_000
PASSAGE_CHARS = 1_500
PARSE_SECONDS = 60.0
_KINDS = {".html": "html", ".htm": "html", ".xhtml": "html", ".pdf": "pdf"}
_FROM = "@"
"""Between the digest of a document and what its file's place is known by."""
_TOO_MUCH = f"to read it takes {words_of_file.CPU_SECONDS} seconds or too much memory; make a text file of it"


class NoDocument(Exception):
    """A file that is no document; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Document:
    digest: str
    passages: list[str]


def documents_in(paths: list[Path], called: str | None = None) -> dict[str, Path]:
    """Files by the names that they get: as they are given, those of a folder below the folder's own name, or below
    what it is `called`. Hidden files, and links that lead elsewhere, are left out. Blocking. Raises Misuse."""
    if called is not None and (len(paths) != 1 or not called.strip("/ ")):
        raise Misuse("--as: it is the name of one file or folder; put in each by itself")
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise Misuse(f"there is no file and no folder {str(path)!r}")
        for file in _files(path) if path.is_dir() else [path]:
            top = called.strip("/ ") if called else file.name if file == path else path.resolve().name
            name = (Path(top) / file.relative_to(path)).as_posix()
            if name in found and found[name].resolve() != file.resolve():
                raise Misuse(f"two files would be the document {name!r}; put in the folder above them, or use --as")
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


def check_name(name: str) -> None:
    """Raises NoDocument for one that no store can keep: a file system takes any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise NoDocument("its name is no text in UTF-8; rename it") from None


def check_origins(files: Mapping[str, Path], known: Mapping[str, str]) -> None:
    """`known`: digests by the names of documents. Blocking. Raises Misuse where a file of elsewhere has such a name: it
    would be lost, and nobody told."""
    for name, path in files.items():
        before = known.get(name, "").partition(" ")[0].partition(_FROM)[2]
        if before and before != _origin_of(path):
            raise Misuse(
                f"{name!r} is there, of a file in another place; `--as NAME` puts these in under another name, "
                f"`--as {shlex.quote(name.partition('/')[0])}` in place of those"
            )


def with_origin(digest: str, path: Path) -> str:
    """What a document is put in with: stores keep it as it is. One of an older release has the digest alone."""
    return f"{digest}{_FROM}{_origin_of(path)}"


def _origin_of(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]


def digest_of(path: Path) -> str:
    """Of what the file holds. Blocking. Raises NoDocument."""
    return hashlib.sha256(_content(path)).hexdigest()


def read_document(path: Path) -> Document:
    """Blocking. Raises NoDocument."""
    content, kind = _content(path), _KINDS.get(path.suffix.lower(), "")
    if kind == "pdf" or content.startswith(b"%PDF-"):
        text = _words_of(content, "pdf")
    else:
        text = _decoded(content)
        text = _words_of(content, "html") if kind else text
    passages = passages_of(text)
    if not passages:
        raise NoDocument("it has no text")
    return Document(hashlib.sha256(content).hexdigest(), passages[:MOST_PASSAGES_OF_A_DOCUMENT])


def _content(path: Path) -> bytes:
    most = LARGEST_PDF_BYTES if _KINDS.get(path.suffix.lower()) == "pdf" else LARGEST_BYTES
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise NoDocument(f"it can't be read: {error.strerror}") from error
    if len(content) > most:
        raise NoDocument(f"it has more than {most // 1_000_000} MB; cut it up")
    return content


def _decoded(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise NoDocument("it is no text in UTF-8; make a text file of it")
    return text


def _words_of(content: bytes, kind: str) -> str:
    """By a program that is ended where it takes too long. Raises NoDocument."""
    if kind == "pdf" and importlib.util.find_spec("pypdf") is None:
        raise NoDocument("PDFs are read by an extra: pip install 'longhaul-agents[knowledge]'")
    command = [sys.executable, "-I", words_of_file.__file__, kind]
    try:
        done = subprocess.run(command, input=content, capture_output=True, timeout=PARSE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NoDocument(_TOO_MUCH) from None
    if done.returncode not in (0, words_of_file.REFUSED):
        raise NoDocument(_TOO_MUCH)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        raise NoDocument(text)
    return text


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
