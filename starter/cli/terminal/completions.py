"""Completes what is typed in a chat, at Tab: commands, modes, and files behind an `@`."""

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from longhaul.agent.values.permission import PermissionMode


class Completions(Completer):
    def __init__(self, commands: Iterable[str]) -> None:
        """`commands` with their slash."""
        self._commands = sorted(commands)
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Of what stands before the cursor."""
        typed = document.text_before_cursor
        word = typed.split()[-1] if typed and not typed[-1].isspace() else ""
        if typed.startswith("/") and word == typed:
            yield from _beginning(self._commands, word)
        elif typed.startswith("/mode "):
            yield from _beginning([mode.value for mode in PermissionMode], word)
        elif word.startswith("@"):
            path = word[1:]
            yield from self._paths.get_completions(Document(path, len(path)), complete_event)


def _beginning(words: Iterable[str], start: str) -> Iterable[Completion]:
    return (Completion(word, start_position=-len(start)) for word in words if word.startswith(start))
