"""The door from a command's flags to its work, behind which temporalio is loaded."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from longhaul.starter.cli.session_lookup import Name
    from longhaul.starter.cli.terminal.screen import Screen


def leave_by(work: Callable[[], Coroutine[Any, Any, int]]) -> NoReturn:
    """Do the work and leave the command with its exit code."""
    # --help and --version must not wait for what this imports.
    from longhaul.starter.cli.exit_codes import perform  # noqa: PLC0415

    raise typer.Exit(perform(work))


def on_session(
    s: str,
    user: str | None,
    agent: str | None,
    work: Callable[["Screen", "Name"], Coroutine[Any, Any, int]],
    *,
    as_json: bool,
) -> NoReturn:
    """The same with a screen and the name of a session."""
    from longhaul.starter.cli.session_lookup import Name  # noqa: PLC0415  loads temporalio
    from longhaul.starter.cli.terminal.screen import Screen  # noqa: PLC0415

    leave_by(lambda: work(Screen(as_json=as_json), Name(s, user, agent)))
