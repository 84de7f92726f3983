"""`longhaul permission check`: calls in, decisions out, a line for a line. Nothing is run and no server is needed."""

import json
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NoReturn, cast

import typer
from pydantic import ValidationError

# The one command that needs the tools themselves: it must look at a call just as a worker does.
from longhaul.activities.examine_calls import Rehearsal
from longhaul.activities.process.sandbox import SandboxPolicy
from longhaul.activities.tool import ToolSetupError
from longhaul.activities.tools.registry import Toolbox, default_tools, load_modules
from longhaul.activities.tools.web import web_tools
from longhaul.agent.entries import CallRuling
from longhaul.agent.plain.errors import BadInput, what_is_wrong
from longhaul.agent.values.permission import PermissionContext, PermissionMode, PermissionRule
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, Misuse, complain
from longhaul.starter.settings import Settings

LINE_CAP_BYTES = 32_000_000
RULES_CAP_BYTES = 10_000_000


group = options.SubjectCommands(no_args_is_help=True)


class BadLine(BadInput):
    """A line that is no call; `id` is its id as far as it has one."""

    def __init__(self, sentence: str, id: object = None) -> None:  # noqa: A002  as the line calls it
        super().__init__(sentence)
        self.id = id


@dataclass(frozen=True, slots=True)
class CallLine:
    """One line, read."""

    id: object
    tool: str
    input: str


@group.command()
async def check(
    *,
    mode: options.Mode = None,
    rules: Annotated[
        Path | None, typer.Option(help="TOML or JSON: an agent file, its table `permission`, or a list of rules.")
    ] = None,
    workspace: options.Workspace = None,
) -> int:
    """Show what a session would decide on each call from stdin: allow, ask or deny. Nothing runs.

    Reads JSON lines `{"id", "tool", "input"}`, or for Bash `{"id", "command"}`; prints for each, in order, a JSON line
    `{"id", "behavior", "reason", "suggested_rules"}`. A line that is no such object gets `{"id", "error"}`, and the
    exit code is 2 at the end.

    Example: echo '{"id": 1, "command": "git push"}' | longhaul permission check --mode accept_edits
    """
    try:
        settings = Settings()
        web = web_tools(settings.web_search, settings.web_private, robots=settings.web_robots)
        toolbox = Toolbox(
            [*default_tools(sandbox=SandboxPolicy(settings.sandbox)), *web, *load_modules(settings.tools)]
        )
    except ToolSetupError as error:
        raise Misuse(str(error)) from None
    permission, root = permission_of(mode, rules), Path(workspace or ".").expanduser().absolute()
    if not root.is_dir():
        raise Misuse(f"--workspace: there is no directory {str(root)!r}; make it first")
    rehearsal = Rehearsal(toolbox, permission, root.resolve(), _skills_of(rules))
    bad = 0
    for line in lines_of(sys.stdin.buffer):
        try:
            asked = read_call(line)
        except BadLine as error:
            bad += 1
            _print({"id": error.id, "error": str(error)})
        else:
            _print(answer(asked, await rehearsal.decide(asked.tool, asked.input)))
    return complain(f"{bad} lines were no calls; see `error`", Exit.MISUSE) if bad else Exit.DONE


def _skills_of(rules: Path | None) -> tuple[str, ...]:
    """Of an agent file that is given for its rules: Skill reads what lies in these folders. Raises Misuse."""
    table = {} if rules is None else _read(rules)
    listed = cast(dict[str, object], table).get("skills", []) if isinstance(table, dict) else []
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in cast(list[object], listed)):
        raise Misuse(f'--rules: {rules}: skills takes a list of folders, as in ["skills"]')
    return tuple(cast(list[str], listed))


def permission_of(mode: str | None, rules: Path | None) -> PermissionContext:
    """What the rules file and the mode come to. Raises Misuse naming the flag, the key and what is wrong."""
    context = PermissionContext() if rules is None else _context_in(rules)
    if mode is None:
        return context
    try:
        return context.model_copy(update={"mode": PermissionMode(mode)})
    except ValueError:
        known = ", ".join(PermissionMode)
        raise Misuse(f"--mode: there is no mode {mode!r}; there are: {known}") from None


def _context_in(file: Path) -> PermissionContext:
    table = _read(file)
    if isinstance(table, dict) and isinstance(table.get("permission"), dict):
        table = table["permission"]
    table = {"rules": table} if isinstance(table, list) else table
    # A misspelt key would be dropped, and a rule without its `behavior` allows.
    if not isinstance(table, dict):
        raise Misuse(f"--rules: {file} contains neither a table `permission` nor a list of rules")
    named = cast(dict[str, Any], table)
    rules = cast(list[Any], named["rules"]) if isinstance(named.get("rules"), list) else []
    for where, entry, known in [
        ("permission", named, PermissionContext.model_fields),
        *(("a rule", rule, PermissionRule.model_fields) for rule in rules if isinstance(rule, dict)),
    ]:
        unknown = sorted(set(entry) - set(known))
        if unknown:
            raise Misuse(f"--rules: {file}: {where} has no {unknown[0]!r}; known are {', '.join(known)}")
    try:
        return PermissionContext.model_validate(table)
    except ValidationError as error:
        raise Misuse(f"--rules: {file}: {what_is_wrong(error)}") from None


def _read(file: Path) -> Any:
    try:
        with file.open("rb") as opened:
            data = opened.read(RULES_CAP_BYTES + 1)
        if len(data) > RULES_CAP_BYTES:
            raise Misuse(f"--rules: {file} has more than {RULES_CAP_BYTES:,} bytes")
        text = data.decode()
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") and file.suffix != ".toml" else tomllib.loads(text)
    except OSError as error:
        raise Misuse(f"--rules: {str(file)!r} can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Misuse(f"--rules: {file} is neither TOML nor JSON: {error}") from None


def lines_of(stream: BinaryIO) -> Iterator[bytes]:
    """The lines that are not empty. Of one above the cap a piece that is too long, and no more."""
    while line := stream.readline(LINE_CAP_BYTES + 1):
        rest = line
        while len(rest) > LINE_CAP_BYTES and not rest.endswith(b"\n"):
            rest = stream.readline(LINE_CAP_BYTES + 1)
        if line.strip():
            yield line


def read_call(line: bytes) -> CallLine:
    """Raises BadLine with what is wrong."""
    if len(line) > LINE_CAP_BYTES:
        raise BadLine(f"the line has more than {LINE_CAP_BYTES:,} bytes")
    try:
        call = json.loads(line, parse_constant=_refuse_constant)
    except RecursionError:
        raise BadLine("the line is nested too deeply") from None
    except ValueError as error:
        raise BadLine(f"the line is not JSON: {error}") from None
    if not isinstance(call, dict):
        raise BadLine('the line is no JSON object; give {"id": …, "tool": …, "input": …}')
    return _parse_call(cast(dict[str, Any], call))


def _parse_call(call: dict[str, Any]) -> CallLine:
    id_, tool, given = call.get("id"), call.get("tool"), call.get("input")
    if tool is None and "command" in call:
        tool = "Bash"
    if not isinstance(tool, str):
        raise BadLine("tool: the name of a tool is needed, or for Bash `command`", id_)
    if given is None and "command" in call:
        given = {"command": call["command"]}
    if given is None:
        raise BadLine("input: the arguments are needed, as an object or as JSON text", id_)
    try:
        return CallLine(id_, tool, given if isinstance(given, str) else json.dumps(given))
    except RecursionError:
        raise BadLine("input: it is nested too deeply", id_) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def answer(asked: CallLine, ruling: CallRuling) -> dict[str, Any]:
    """What is printed: a call that can't be made is denied, one that runs outside is allowed."""
    behavior = {"invalid": "deny", "external": "allow"}.get(ruling.behavior, ruling.behavior)
    rules = [rule.model_dump(mode="json") for rule in ruling.suggested_rules]
    return {"id": asked.id, "behavior": behavior, "reason": ruling.reason, "suggested_rules": rules}


def _print(line: dict[str, Any]) -> None:
    try:
        text = json.dumps(line)
    except (RecursionError, ValueError):
        text = json.dumps({**line, "id": None})
    print(text, flush=True)
