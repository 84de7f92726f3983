"""The console script `longhaul`: every command with its flags. What each does stands in the module that it loads."""
# ruff: noqa: PLC0415  A command loads what it needs when it runs: --help and --version must not wait for temporalio.

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from starter.cli import keeping, options, permission, rollout, rules, serving, state, steering
from starter.cli.lazy import leave_by

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
app.add_typer(serving.app, name="serve")


def main() -> NoReturn:
    """Run one command, then leave without the interpreter's exit: the SDK's threads abort that now and then."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
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


def _flush_quietly() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            return


def _print_version(asked: bool) -> None:  # noqa: FBT001  typer's callback
    if asked:
        try:
            print(f"longhaul {version('longhaul')}")
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
    from starter.cli.dev import Layout, serve

    leave_by(lambda: serve(Layout(data_dir, port, ui_port, worker=not no_worker)))


@app.command()
def worker() -> None:
    """Run one worker against TEMPORAL_ADDRESS."""
    from starter.cli.dev import become_worker
    from starter.cli.leaving import Exit, Misuse, complain

    try:
        become_worker()
    except Misuse as error:
        raise typer.Exit(complain(str(error), Exit.MISUSE)) from error


@app.command()
def run(  # noqa: PLR0913  one parameter a flag
    prompt: Annotated[str, typer.Argument(help="What to ask; `-` reads it from stdin.")],
    *,
    agent: options.Agent = None,
    model: options.Model = None,
    session: options.Session = None,
    user: options.User = None,
    workspace: options.Workspace = None,
    mode: options.Mode = None,
    request_id: Annotated[str | None, typer.Option(help="Sent again, it gives the same reply.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for the reply.")] = False,
    play: options.Play = False,
    as_json: options.AsJson = False,
) -> None:
    """Ask for one reply and follow it. Exit 0 finished, 3 parked, 4 the agent failed, 2 bad usage, 130 interrupted."""
    from starter.cli import run as running
    from starter.cli.opening import Wishes
    from starter.cli.screen import Screen

    wishes = Wishes(agent, model, session, user, workspace, mode)
    request = running.Request(prompt, request_id, detach)
    leave_by(lambda: running.run(wishes, request, Screen(as_json=as_json, play=play)))


@app.command()
def chat(  # noqa: PLR0913  one parameter a flag
    *,
    agent: options.Agent = None,
    model: options.Model = None,
    session: options.Session = None,
    user: options.User = None,
    workspace: options.Workspace = None,
    mode: options.Mode = None,
    play: options.Play = False,
) -> None:
    """Talk with an agent: /quit or Ctrl-D leaves, Ctrl-C interrupts."""
    from starter.cli import chat as chatting
    from starter.cli.opening import Wishes
    from starter.cli.screen import Screen

    wishes = Wishes(agent, model, session, user, workspace, mode)
    leave_by(lambda: chatting.chat(wishes, Screen(play=play), play=play))


@app.command()
def sessions(
    *,
    user: options.User = None,
    status: Annotated[str | None, typer.Option(help="idle, working, waiting or paused.")] = None,
    long: Annotated[bool, typer.Option("--long", "-l", help="Ask each one how full its context is.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List the open sessions, newest first."""
    from starter.cli import reading
    from starter.cli.screen import Screen

    leave_by(lambda: reading.sessions(Screen(as_json=as_json), user, status, long=long))


@app.command()
def show(
    s: options.SessionName,
    *,
    full: Annotated[bool, typer.Option("--full", help="All that was ever said, not what the model reads now.")] = False,
    as_: Annotated[
        str, typer.Option("--as", metavar="FORM", help="messages, or steps: actions, observations, condensations.")
    ] = "messages",
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one session: what the model reads, cost, what it waits for and how to answer."""
    from starter.cli import reading
    from starter.cli.finding import Name
    from starter.cli.screen import Screen

    leave_by(lambda: reading.show(Screen(as_json=as_json), Name(s, user, agent), full=full, form=as_))


@app.command()
def watch(
    s: Annotated[list[str], typer.Argument(metavar="S…", help="One session, or several in one feed.")],
    *,
    start: Annotated[
        int, typer.Option("--from", min=1, help="Number of the first event; its first one if not given.")
    ] = 1,
    user: options.User = None,
    agent: options.Agent = None,
    play: options.Play = False,
    as_json: Annotated[bool, typer.Option("--json", help="One event a line as JSON, and nothing else.")] = False,
) -> None:
    """Follow what a session does, with text as it is said. Ctrl-C leaves it alone."""
    from starter.cli import watching
    from starter.cli.finding import Name
    from starter.cli.screen import Screen

    names = [Name(each, user, agent) for each in s]
    screen = Screen(as_json=as_json, play=play)
    leave_by(lambda: watching.watch_all(screen, names, start) if s[1:] else watching.watch(screen, names[0], start))


@app.command()
def inbox(
    *,
    user: options.User = None,
    team: Annotated[str | None, typer.Option(help="Of agents with this `team`.")] = None,
    tool: Annotated[str | None, typer.Option(help="Calls of this tool.")] = None,
    overdue: Annotated[bool, typer.Option("--overdue", help="Reminded of, escalated or expired.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List all that waits for a person, oldest first."""
    from starter.cli import inbox as opening
    from starter.cli.screen import Screen

    leave_by(lambda: opening.inbox(Screen(as_json=as_json), opening.Wanted(user, team, tool, overdue)))


# Here, so that --help lists them behind the inbox.
steering.add_to(app)
keeping.add_to(app)


@app.command()
def doctor(*, as_json: options.AsJson = False) -> None:
    """Say what is installed, reachable and missing, with the line that mends it."""
    from starter.cli import doctor as examining
    from starter.cli.screen import Screen

    leave_by(lambda: examining.doctor(Screen(as_json=as_json)))


if __name__ == "__main__":
    main()
