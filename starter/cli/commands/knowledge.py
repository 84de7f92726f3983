"""`longhaul knowledge`: documents are put into knowledge bases, listed, searched and taken out.

Files become documents here: which ones a folder has, their text, and the passages that it is cut into.
"""

import asyncio
import hashlib
import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from longhaul.agent.values.spec.knowledge import check_base
from longhaul.starter import render
from longhaul.starter.cli import options, words_of_file
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.memories import meaning_of
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line, visible
from longhaul.stores.memories.memories import MOST_PASSAGES_OF_A_DOCUMENT, KnowledgeBases
from longhaul.stores.memories.open_memories import open_knowledge

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
    """What a document is put in with: stores keep it as it is."""
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


BEGINNING = 60
"""Characters of a passage, by which it is known again."""
MOST_TOLD = 5


group = options.SubjectCommands(no_args_is_help=True)

Base = Annotated[str, typer.Argument(metavar="BASE", help="The knowledge base, as agents name it.")]


@group.command()
async def add(
    screen: Screen,
    base: Base,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders with files.")],
    *,
    called: Annotated[
        str | None, typer.Option("--as", help="Name for the one file or folder; replaces what has that name.")
    ] = None,
) -> int:
    """Add text files (Markdown, HTML, source). Unchanged files stay as they are.

    Example: longhaul knowledge add handbook docs/
    """
    files = await asyncio.to_thread(documents_in, paths, called)
    added, same, left_out, by_words = list[str](), 0, dict[str, str](), dict[str, list[str]]()
    async with _opened(base) as knowledge:
        known = {each.name: each.digest for each in await knowledge.list_documents(base)}
        if called is None:
            await asyncio.to_thread(check_origins, files, known)
        for name, path in files.items():
            try:
                check_name(name)
                if name in known:
                    digest = await asyncio.to_thread(digest_of, path)
                    if known[name] in (digest, with_origin(digest, path)):
                        same += 1  # to read it again could take a minute
                        continue
                document = await asyncio.to_thread(read_document, path)
            except NoDocument as error:
                left_out[name.encode(errors="replace").decode()] = str(error)
                screen.remark(f"longhaul: {one_line(name)} is left out: {one_line(str(error))}")
                continue
            taken = await knowledge.put(base, name, with_origin(document.digest, path), document.passages)
            if not taken.new:
                same += 1
                continue
            added.append(name)
            screen.show(Text(f"{one_line(name)}: passages: {len(document.passages)}"))
            if taken.by_words_alone:
                by_words[name] = [document.passages[at][:BEGINNING] for at in taken.by_words_alone]
                _tell_refused(screen, name, by_words[name])
    screen.document({"added": added, "unchanged": same, "left_out": left_out, "by_words_alone": by_words})
    screen.show(Text(f"added: {len(added)}, unchanged: {same}, left out: {len(left_out)}"))
    return Exit.TROUBLE if left_out else Exit.DONE


def _tell_refused(screen: Screen, name: str, beginnings: list[str]) -> None:
    for each in beginnings[:MOST_TOLD]:
        screen.remark(
            f"longhaul: {one_line(name)}: the model of the embeddings refuses the passage {one_line(each)!r}; it is "
            "found only by its words"
        )
    if (more := len(beginnings) - MOST_TOLD) > 0:
        screen.remark(f"longhaul: {one_line(name)}: and {more} more; --json names all")


@group.command("list")
async def list_documents(
    screen: Screen,
    base: Annotated[str | None, typer.Argument(metavar="[BASE]", help="Only this one.")] = None,
) -> int:
    """List the documents of the knowledge bases."""
    async with _opened(base) as knowledge:
        found = await knowledge.list_documents(base)
    screen.document({"documents": [asdict(each) for each in found]})
    for each in found:
        told = (Text(f"passages: {each.passages}", "dim"), Text(render.when(each.at), "dim"))
        screen.show_fields(Text(each.base, "bold"), Text(one_line(each.name)), *told)
    if not found:
        screen.show(Text("there are no documents; `longhaul knowledge add BASE PATH` puts some in"))
    return Exit.DONE


@group.command()
async def search(
    screen: Screen,
    base: Base,
    query: Annotated[str, typer.Argument(help="What an agent would ask.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=50, help="How many passages at most.")] = 5,
) -> int:
    """Show the passages that an agent would find."""
    async with _opened(base) as knowledge:
        await _check(knowledge, base)
        found = await knowledge.search([base], query, limit)
    screen.document({"passages": [asdict(each) for each in found]})
    for each in found:
        screen.show(Text.assemble((one_line(each.document), "bold"), f"\n{visible(each.text)}\n"))
    if not found:
        screen.show(Text("no document has any of these words"))
    return Exit.DONE


@group.command()
async def delete(
    screen: Screen,
    base: Base,
    documents: Annotated[list[str] | None, typer.Argument(metavar="[DOCUMENT]...", help="As `list` has them.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="The whole base.")] = False,
) -> int:
    """Delete documents from a knowledge base, for good."""
    documents = documents or []
    if every == bool(documents):
        raise Misuse("name the documents, as `longhaul knowledge list` shows them, or say --all")
    async with _opened(base) as knowledge:
        await _check(knowledge, base)
        count = await knowledge.delete(base, None if every else documents)
    screen.document({"deleted": count})
    screen.show(Text(f"deleted: {count}"))
    return Exit.DONE if every or count == len(set(documents)) else Exit.TROUBLE


async def _check(knowledge: KnowledgeBases, base: str) -> None:
    if base not in (bases := await knowledge.bases()):
        raise Misuse(f"there is no knowledge base {base!r}; there are: {', '.join(bases) or 'none'}")


@asynccontextmanager
async def _opened(base: str | None) -> AsyncIterator[KnowledgeBases]:
    """Raises Misuse for a name that no base can have."""
    try:
        check_base(base or "any")
    except ValueError as error:
        raise Misuse(str(error)) from None
    settings = Settings()
    knowledge = open_knowledge(settings.knowledge, settings.data_dir, meaning_of(settings, patient=True))
    try:
        yield knowledge
    finally:
        await knowledge.close()
