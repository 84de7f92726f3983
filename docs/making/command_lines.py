"""The reference of the command line, written from the commands themselves."""

from collections.abc import Iterator
from typing import Any

import typer

from docs.making.tables import cell
from longhaul.starter.cli.main import app


def commands() -> str:
    return (
        "# Commands, flag by flag\n\n"
        "After this page you know each command of `longhaul` with its arguments and flags, as `--help` prints "
        "them. The flags of `longhaul` itself come before the command: `longhaul --address HOST:PORT sessions`.\n\n"
        + "".join(_section(words, command) for words, command in _every("longhaul", typer.main.get_command(app)))
    )


def _every(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Each command with the words that call it, the groups too."""
    yield words, command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        if not below.hidden:
            yield from _every(f"{words} {name}", below)


def _section(words: str, command: Any) -> str:
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    usage = " ".join([words, *(_as_argument(one) for one in shown if one.param_type_name == "argument")])
    inner = "".join(f"- [`{words} {name}`](#{words.replace(' ', '-')}-{name})\n" for name in _names(command))
    return (
        f"## {words}\n\n`{usage}`\n\n{cell(command.help or '')}\n\n"
        + (f"{inner}\n" if inner else "")
        + (f"| flag or argument | means |\n|---|---|\n{''.join(_line(one) for one in shown)}\n" if shown else "")
    )


def _names(command: Any) -> list[str]:
    return sorted(name for name, below in getattr(command, "commands", {}).items() if not below.hidden)


def _as_argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required or name.startswith("[") else f"[{name}]"


def _line(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        spelt = f"`{_as_argument(parameter)}`"
    else:
        named = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        value = "" if parameter.is_flag else f" `{parameter.metavar or parameter.name.upper()}`"
        spelt = f"{named}{value}"
    default = parameter.default
    said = f" Default: `{default}`." if isinstance(default, (int, float, str)) and not isinstance(default, bool) else ""
    again = " May be given several times." if parameter.multiple else ""
    return f"| {spelt} | {cell(parameter.help or '')}{said if default != '' else ''}{again} |\n"
