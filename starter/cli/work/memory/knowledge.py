"""`longhaul knowledge`: documents are put into knowledge bases, listed, searched and taken out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from longhaul.agent.values.spec.knowledge import check_base
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.work.memory.documents import (
    NoDocument,
    check_name,
    check_origins,
    digest_of,
    documents_in,
    read_document,
    with_origin,
)
from longhaul.starter.reach.vectors import meaning_of
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line, visible
from longhaul.stores.memories.memories import KnowledgeBases
from longhaul.stores.memories.open_memories import open_knowledge

BEGINNING = 60
"""Characters of a passage, by which it is known again."""
MOST_TOLD = 5


async def add(screen: Screen, base: str, paths: list[Path], called: str | None = None) -> int:
    """Exit code 1 where a file could not be taken. Raises BadStoreSetting and StoreUnavailable, as all here, and Misuse
    where names are taken by files of elsewhere, unless `called` says the name."""
    files = await asyncio.to_thread(documents_in, paths, called)
    added, same, left_out, by_words = list[str](), 0, dict[str, str](), dict[str, list[str]]()
    async with _opened(base) as knowledge:
        known = {each.name: each.digest for each in await knowledge.list_documents(base)}
        if called is None:
            await asyncio.to_thread(check_origins, files, known)
        for name, path in files.items():
            try:
                check_name(name)
                if await asyncio.to_thread(_is_known, path, known.get(name, "")):
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


def _is_known(path: Path, known: str) -> bool:
    """Blocking. Raises NoDocument."""
    if not known:
        return False
    digest = digest_of(path)
    return known in (digest, with_origin(digest, path))


def _tell_refused(screen: Screen, name: str, beginnings: list[str]) -> None:
    for each in beginnings[:MOST_TOLD]:
        screen.remark(
            f"longhaul: {one_line(name)}: the model of the embeddings refuses the passage {one_line(each)!r}; it is "
            "found by its words alone"
        )
    if (more := len(beginnings) - MOST_TOLD) > 0:
        screen.remark(f"longhaul: {one_line(name)}: and {more} more; --json names all")


async def listed(screen: Screen, base: str | None) -> int:
    async with _opened(base) as knowledge:
        found = await knowledge.list_documents(base)
    screen.document({"documents": [asdict(each) for each in found]})
    for each in found:
        told = (Text(f"passages: {each.passages}", "dim"), Text(each.at, "dim"))
        screen.show_fields(Text(each.base, "bold"), Text(one_line(each.name)), *told)
    if not found:
        screen.show(Text("there are no documents; `longhaul knowledge add BASE PATH` puts some in"))
    return Exit.DONE


async def search(screen: Screen, base: str, query: str, limit: int) -> int:
    async with _opened(base) as knowledge:
        await _check(knowledge, base)
        found = await knowledge.search([base], query, limit)
    screen.document({"passages": [asdict(each) for each in found]})
    for each in found:
        screen.show(Text.assemble((one_line(each.document), "bold"), f"\n{visible(each.text)}\n"))
    if not found:
        screen.show(Text("no document has any of these words"))
    return Exit.DONE


async def delete(screen: Screen, base: str, documents: list[str], *, every: bool) -> int:
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
