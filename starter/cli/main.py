"""The console script `longhaul`: every command with its flags. What each does stands in the module that it loads."""
# ruff: noqa: PLC0415  A command loads what it needs when it runs: --help and --version must not wait for temporalio.

import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.commands import budget as spending
from longhaul.starter.cli.commands import (
    hub,
    keys,
    knowledge,
    mcp,
    memory,
    permission,
    rollout,
    rules,
    schedule,
    state,
    steering,
    trust,
    views,
    worktree,
)
from longhaul.starter.cli.commands import lifecycle as keeping
from longhaul.starter.cli.commands import serve as serving
from longhaul.starter.cli.options import leave_by

app = typer.Typer(
    name="longhaul",
    help="Agents that survive crashes, redeploys and long waits.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(state.app, name="state")
app.add_typer(permission.app, name="permission")
app.add_typer(rules.app, name="rules")
app.add_typer(rollout.app, name="rollout")
app.add_typer(schedule.app, name="schedule")
app.add_typer(hub.app, name="hub")
app.add_typer(keys.app, name="keys")
app.add_typer(worktree.app, name="worktree")
app.add_typer(serving.app, name="serve")
app.add_typer(mcp.app, name="mcp")
app.add_typer(memory.app, name="memory")
app.add_typer(knowledge.app, name="knowledge")


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


@app.command()
def dev(
    *,
    data_dir: Annotated[Path | None, typer.Option(help="Keeps all state; else `dev` in LONGHAUL_DATA_DIR.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the Temporal server; 0: a free one.")] = 7233,
    ui_port: Annotated[int, typer.Option(min=0, max=65535, help="Of the Web UI; 0: a free one.")] = 8233,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="The server alone.")] = False,
) -> None:
    """Run a Temporal development server and one worker until Ctrl-C."""
    from longhaul.starter.cli.work.dev import Layout, serve

    leave_by(lambda: serve(Layout(data_dir, port, ui_port, worker=not no_worker)))


@app.command()
def worker() -> None:
    """Run one worker against TEMPORAL_ADDRESS."""
    from longhaul.starter.cli.exit_codes import perform
    from longhaul.starter.cli.work.dev import become_worker, settle_settings

    if code := perform(settle_settings):
        raise typer.Exit(code)
    become_worker()


@app.command()
def run(  # noqa: PLR0913  one parameter a flag
    prompt: Annotated[str, typer.Argument(help="What to ask; `-` reads it from stdin.")],
    *,
    agent: options.Agent = None,
    model: options.Model = None,
    called: options.Set = None,
    session: options.Session = None,
    user: options.User = None,
    workspace: options.Workspace = None,
    mode: options.Mode = None,
    request_id: Annotated[str | None, typer.Option(help="Sent again, it gives the same reply.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for the reply.")] = False,
    max_iters: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="The most steps that a reply of this session takes.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option(metavar="FILE", help="A JSON schema: the answer is a value that fits it.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="The most dollars that this session may spend.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="The most tokens that this session may read and write.")
    ] = None,
    play: options.Play = False,
    as_json: options.AsJson = False,
) -> None:
    """Ask for one reply and follow it. Exit 0 finished, 3 parked, 4 the agent failed, 2 bad usage, 130 interrupted."""
    from longhaul.starter.cli.session_start import Wishes
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import run as running

    wishes = Wishes(agent, model, session, user, workspace, mode, max_iters, max_cost, max_tokens, tuple(called or ()))
    request = running.Request(prompt, request_id, detach, schema)
    leave_by(lambda: running.run(wishes, request, Screen(as_json=as_json, play=play)))


@app.command()
def chat(  # noqa: PLR0913  one parameter a flag
    *,
    agent: options.Agent = None,
    model: options.Model = None,
    called: options.Set = None,
    session: options.Session = None,
    user: options.User = None,
    workspace: options.Workspace = None,
    mode: options.Mode = None,
    newest: Annotated[bool, typer.Option("--continue", "-c", help="Go on with the newest session.")] = False,
    pick: Annotated[bool, typer.Option("--pick", help="Go on with a session of a list, open or closed.")] = False,
    play: options.Play = False,
) -> None:
    """Talk with an agent: /quit or Ctrl-D leaves, Ctrl-C interrupts."""
    from longhaul.starter.cli.session_start import Wishes
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import chat as chatting

    wishes = Wishes(agent, model, session, user, workspace, mode, called=tuple(called or ()))
    leave_by(lambda: chatting.chat(wishes, Screen(play=play), play=play, which=chatting.which_of(newest, pick)))


# Here, so that --help lists them behind the chat.
views.add_to(app)
steering.add_to(app)
keeping.add_to(app)
spending.add_to(app)
trust.add_to(app)
app.command()(serving.console)


@app.command()
def doctor(*, as_json: options.AsJson = False) -> None:
    """Say what is installed, reachable and missing, with the line that mends it."""
    from longhaul.starter.cli.doctor import doctor as examining
    from longhaul.starter.cli.terminal.screen import Screen

    leave_by(lambda: examining.doctor(Screen(as_json=as_json)))


if __name__ == "__main__":
    main()
