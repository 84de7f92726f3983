"""The console script `longhaul`: what holds for every command. The commands themselves stand in `command_table`."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, NoReturn

import typer

from longhaul.starter.cli.command_table import TableGroup

app = typer.Typer(
    name="longhaul",
    cls=TableGroup,
    help="Agents that survive crashes, redeploys and long waits.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """Run one command, then leave without the interpreter's exit: the SDK's threads abort that now and then."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if sys.stdin is not None:
        # Else raw bytes get far, and end as a traceback.
        sys.stdin.reconfigure(errors="strict")  # type: ignore[union-attr]
    if why := not_text(sys.argv):
        print(f"longhaul: {why}", file=sys.stderr)
        _flush_quietly()
        os._exit(2)
    if sys.stdout.isatty():
        # A parent's word for a size that the terminal itself tells: of another one, or of before it was resized. What
        # is painted over would stay where it was.
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)
    try:
        app(prog_name="longhaul")
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    except BrokenPipeError:
        code = 141  # as a program that SIGPIPE has ended
    _flush_quietly()
    os._exit(code)


def not_text(words: Sequence[str]) -> str:
    """Why a command line can't be meant so: bytes that are no UTF-8 reach Python as half surrogate pairs, which no id,
    text or path that is written down can hold. Empty: nothing is wrong."""
    for place, word in enumerate(words):
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            before = words[place - 1] if place > 1 and words[place - 1].startswith("-") else ""
            spelt = os.fsencode(word).decode("utf-8", "backslashreplace")
            whose = f"{before}: {spelt!r}" if before else f"argument {place}: {spelt!r}"
            return f"{whose} is not UTF-8 text; write it in UTF-8 (see the settings LANG and LC_ALL of your terminal)"
    return ""


def _flush_quietly() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            return


def _print_version(asked: bool) -> None:  # noqa: FBT001  typer's callback
    if asked:
        try:
            print(f"longhaul {version('longhaul-agents')}")
        except PackageNotFoundError:
            print("longhaul (not installed)")
        raise typer.Exit


@app.callback()
def everywhere(
    *,
    address: Annotated[str | None, typer.Option(help="Temporal's host:port, before TEMPORAL_ADDRESS.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Temporal's namespace, before TEMPORAL_NAMESPACE.")] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """What holds for every command."""
    if address is not None:
        os.environ["TEMPORAL_ADDRESS"] = address
    if namespace is not None:
        os.environ["TEMPORAL_NAMESPACE"] = namespace


if __name__ == "__main__":
    main()
