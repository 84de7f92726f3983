"""Has a person type a value at the terminal, field by field as its schema says."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from longhaul.starter.cli.terminal.key_presses import read
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.structured_input import fill_in


def typed_fields(screen: Screen, schema: dict[str, Any], kept: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`kept`: the value before, of which an empty line keeps a field. Raises EOFError where the person leaves."""

    def field(question: str) -> str:
        return read(screen.in_rows(question))

    return fill_in(schema, field, lambda said: screen.show_folded(Text(said, "red")), kept)
